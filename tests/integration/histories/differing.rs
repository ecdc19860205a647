//! Two instances whose definitions of one history have different `item`s: as while an operator replaces them
//! one after the other.

use serde_json::{Value, json};

use crate::commands::program::{Place, pagebucket, run};
use crate::harness::differing::{Directory, instance};
use crate::harness::{History, test_over};

test_over!(what_pages_depend_on_may_not_change, NOTES);
/// No server starts with another value, and what it says names the member.
async fn what_pages_depend_on_may_not_change(history: &'static History) {
    let before = instance(history, &Directory::of(history, |_| ()), None).await;
    before.client.append(1, &history.item(1)).await.expect(201);
    let place = Place::of_service(&before).await;
    type Change = (&'static str, fn(&mut Value));
    let changes: [Change; 7] = [
        ("owner", |definition| definition["owner"]["collection"] = "places".into()),
        ("owner", |definition| definition["owner"]["field"] = "placeId".into()),
        ("owner", |definition| definition["owner"]["type"] = "integer".into()),
        ("owner", |definition| definition["owner"]["type"] = "uuid".into()),
        ("pageSize", |definition| definition["pageSize"] = 3.into()),
        ("date", |definition| {
            definition["item"]["properties"]["readAt"] = json!({ "type": "string", "format": "date-time" });
            definition["date"] = "readAt".into();
        }),
        ("maxItemBytes", |definition| definition["maxItemBytes"] = 8192.into()),
    ];
    for (member, change) in changes {
        let directory = Directory::changed(history, change);
        let directory = directory.0.to_str().expect("UTF-8");
        let flags = ["--mongodb-uri", &place.uri, "--database", &place.name, "--histories", directory];
        let ended = run(&mut pagebucket(&[&["serve", "--listen", "127.0.0.1:0"], &flags[..]].concat())).await;
        let sentence = ended.sentence(3);
        assert!(
            sentence.contains(&format!("the {member} ")) && sentence.contains("cannot become"),
            "{sentence}"
        );
    }
    let more = Directory::changed(history, |definition| definition["maxItemBytes"] = 65_536.into());
    let after = instance(history, &more, Some(&before)).await;
    assert_eq!(after.client.total(1).await, 1);
}
