//! Minutes that are there before they are needed: what is made, and that no view is lost by it.

use mongodb::bson::{Document, doc};

use crate::commands::program::{Place, run};

#[tokio::test(flavor = "multi_thread")]
async fn the_command_makes_hours_of_pages() {
    let place = Place::new().await;
    let flags = ["--path", "/a", "--path", "/b", "--hour", "2014-01-01T10:00:00Z", "--hours", "3"];
    for said in ["created 360 minutes; 0 existed already\n", "created 0 minutes; 360 existed already\n"] {
        let ended = run(&mut place.pagebucket("preallocate", &flags)).await;
        assert_eq!((ended.status, ended.out.as_str()), (Some(0), said), "{ended:?}");
    }
    let views = place.database().await.collection::<Document>("page_views");
    assert_eq!(views.count_documents(doc! { "page": "/b", "totalViews": 0 }).await.expect("a count"), 180);
    let ended =
        run(&mut place.pagebucket("preallocate", &["--path", "/a", "--hour", "2014-01-01T10:01:00Z"])).await;
    assert_eq!(ended.sentence(2), "--hour must be on a whole hour of UTC");
}
