//! A walk is a snapshot: windows with `asOf`, which never change and need no look at the database.

use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::json;

use crate::harness::{Answer, History, Service, Setup, TOTAL, shared, test_over};

const IMMUTABLE: &str = "private, max-age=31536000, immutable";

/// A service on a new database whose commands on the history's collection are written down.
async fn observed(history: &'static History, page_cache: u64) -> (Service, Arc<Mutex<Vec<String>>>) {
    let mut setup = Setup::on(shared().await).of(history);
    setup.config.api.page_cache = page_cache;
    let (setup, seen) = observe(setup);
    (setup.start().await, seen)
}

fn observe(setup: Setup) -> (Setup, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (watch, history) = (Arc::clone(&seen), setup.history);
    let setup = setup.observed(move |name, command| {
        if command.get_str(name).is_ok_and(|collection| collection == history.name) {
            watch.lock().expect("no test panics here").push(name.to_owned());
        }
    });
    (setup, seen)
}

fn taken(seen: &Mutex<Vec<String>>) -> usize {
    std::mem::take(&mut *seen.lock().expect("no test panics here")).len()
}

const MIB: u64 = 1024 * 1024;

/// Whether it is a snapshot: its cache headers and its tag must agree on that.
#[track_caller]
fn is_snapshot(answer: &Answer) -> bool {
    let tag = answer.header("etag");
    match answer.header("cache-control") {
        IMMUTABLE => assert!(tag.contains(".a"), "{tag}"),
        other => assert!(other == "no-cache" && tag.contains(".s"), "{other} {tag}"),
    }
    tag.contains(".a")
}

test_over!(a_walk_is_of_the_moment_it_began_at, NOTES, READINGS);
/// The same totals in every window, either way, while the history grows; then on with what is newer.
async fn a_walk_is_of_the_moment_it_began_at(history: &'static History) {
    let service = Service::of(history).await;
    let mut total = history.pages(20.3);
    service.client.append_all(1, 1..=total).await;
    // Windows of a page and of parts of it; few enough of a long history.
    let page = history.page_size.min(100) as usize;
    let part = if history.page_size > 100 { 70 } else { 7 };
    for (order, limit) in [("asc", page), ("asc", part), ("desc", page), ("desc", (page * 5 / 2).min(100))] {
        let began = total;
        let mut path = history.at(1, &format!("?limit={limit}&order={order}"));
        let (mut seen, mut newer, mut windows) = (Vec::new(), String::new(), 0);
        loop {
            let answer = service.client.get(&path).await;
            let body = answer.expect(200);
            assert_eq!(is_snapshot(&answer), windows > 0, "the first names no moment: {path}");
            assert_eq!((&body[TOTAL], &body["totalPages"]), (&json!(began), &json!(history.page_of(began))));
            let links = &body["links"];
            for name in ["newer", "first", "last"] {
                assert!(!links[name].as_str().expect("always there").contains("asOf"), "{links}");
            }
            let of = format!("&asOf={began}");
            for name in ["next", "prev"] {
                assert!(links.get(name).is_none_or(|link| link.as_str().unwrap().contains(&of)), "{links}");
            }
            windows += 1;
            if order == "asc" || newer.is_empty() {
                newer = links["newer"].as_str().unwrap().to_owned();
            }
            seen.extend(history.seqs(&body));
            service.client.append_all(1, total + 1..=total + 3).await;
            total += 3;
            let Some(next) = links["next"].as_str() else { break };
            path = next.to_owned();
        }
        assert_eq!(windows, began.div_ceil(limit as u64), "{order} {limit}");
        loop {
            let body = service.client.get(&newer).await.expect(200);
            let shown = history.seqs(&body);
            if shown.is_empty() {
                break;
            }
            seen.extend(shown);
            newer = body["links"]["newer"].as_str().unwrap().to_owned();
        }
        seen.sort_unstable();
        assert_eq!(seen, (1..=total).collect::<Vec<_>>(), "{order} {limit}");
    }
}

test_over!(any_window_is_of_that_moment, NOTES, READINGS);
/// Whether its items were on full pages then or not: it has the items and the totals of then.
async fn any_window_is_of_that_moment(history: &'static History) {
    let service = Service::of(history).await;
    let (page, total) = (history.page_size, history.pages(4.8).max(9));
    service.client.append_all(1, 1..=total).await;
    let [two, half, three] = [2.0, 2.5, 3.0].map(|pages| history.pages(pages));
    for moment in [1, page - 1, page, two, half, three, total, total + 1, 9_007_199_254_740_991] {
        let has_been = moment <= total;
        let end = if has_been { moment } else { total };
        for cursor in [0, 1, page, two - 1, two, half - 1, half, end - 1, end, 9_007_199_254_740_990] {
            for limit in [1, 10, 100] {
                let up_to = |end: u64| end.saturating_sub(limit) + 1..=end;
                for (query, shown) in [
                    (format!("after={cursor}"), cursor + 1..=end.min(cursor + limit)),
                    (format!("before={}", cursor + 1), up_to(cursor.min(end))),
                ] {
                    let path = history.at(1, &format!("?{query}&limit={limit}&asOf={moment}"));
                    let answer = service.client.get(&path).await;
                    let body = answer.expect(200);
                    assert_eq!(history.seqs(&body), shown.collect::<Vec<_>>(), "{path}");
                    assert_eq!(is_snapshot(&answer), has_been, "{path}");
                    let totals = (&body[TOTAL], &body["totalPages"]);
                    assert_eq!(totals, (&json!(end), &json!(history.page_of(end))), "{path}");
                    assert_eq!(body["links"]["self"], path);
                }
            }
        }
    }
    // Where that moment ends, so does the walk; what came later is newer.
    let last = page.min(100);
    let window = history.at(1, &format!("?after={}&limit={last}&asOf={half}", half - 1));
    let shown = service.client.get(&window).await.expect(200);
    assert_eq!((history.seqs(&shown), shown["links"].get("next")), (vec![half], None));
    let newer = service.client.get(shown["links"]["newer"].as_str().unwrap()).await.expect(200);
    assert_eq!(history.seqs(&newer), (half + 1..=total.min(half + last)).collect::<Vec<_>>());
    let none = service.client.get(&history.at(2, "?after=0&limit=10&asOf=30")).await;
    assert_eq!((none.expect(200)[TOTAL].as_u64(), is_snapshot(&none)), (Some(0), false));
}

test_over!(a_walk_over_remembered_pages_asks_nobody, NOTES, READINGS);
async fn a_walk_over_remembered_pages_asks_nobody(history: &'static History) {
    let (service, seen) = observed(history, 2 * MIB).await;
    let (page, limit) = (history.page_size, history.page_size.min(100));
    let total = 30 * limit + history.pages(0.5);
    service.client.append_all(1, 1..=total).await;
    let full = total / page * page;
    for turn in ["first", "again"] {
        let mut path = history.at(1, &format!("?after=0&limit={limit}"));
        taken(&seen);
        // Of windows that are pages, all full ones.
        let windows = full / limit;
        for window in 0..windows {
            let answer = service.client.get(&path).await;
            let body = answer.expect(200);
            assert_eq!(
                history.seqs(&body),
                (window * limit + 1..=window * limit + limit).collect::<Vec<_>>()
            );
            assert_eq!(is_snapshot(&answer), window > 0);
            if turn == "again" && window > 0 {
                assert_eq!(answer.header("server-timing"), "db;dur=0.000, cache;desc=hit", "{path}");
            }
            path = body["links"]["next"].as_str().unwrap_or_default().to_owned();
        }
        // The tail, the first page, and of the other 29 every eleventh, or fewer where a page is read in
        // parts; then the tail alone.
        let asked = taken(&seen);
        if turn == "again" {
            assert_eq!(asked, 1);
        } else if limit == page {
            assert_eq!(asked, 1 + 1 + 3);
        } else {
            assert!((2..=1 + full as usize / page as usize).contains(&asked), "{asked}");
        }
    }
    let last = history.at(1, &format!("?after={full}&limit=10&asOf={total}"));
    service.client.get(&last).await.expect(200);
    assert_eq!(taken(&seen), 1, "beyond the full pages the tail is looked at");
}

test_over!(a_known_snapshot_asks_nobody, NOTES);
/// By whichever instance, also one that has seen nothing yet.
async fn a_known_snapshot_asks_nobody(history: &'static History) {
    let (service, seen) = observed(history, 0).await;
    let total = history.pages(5.5);
    service.client.append_all(1, 1..=total).await;
    let path = format!("?after={}&limit={}&asOf={total}", history.pages(0.5), history.pages(2.5).min(100));
    let path = history.at(1, &path);
    let tag = service.client.get(&path).await.header("etag").to_owned();
    let setup = Setup::on(shared().await).of(history).in_database(&service.database);
    let (setup, also_seen) = observe(setup);
    let sibling = setup.start().await;
    service.client.append_all(1, total + 1..=history.pages(7.7)).await;
    for seen in [&seen, &also_seen] {
        taken(seen);
    }
    for client in [&service.client, &sibling.client] {
        let known = client.send(Method::GET, &path, |request| request.header("if-none-match", &tag)).await;
        assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
        assert_eq!((known.header("etag"), known.header("cache-control")), (tag.as_str(), IMMUTABLE));
    }
    assert_eq!((taken(&seen), taken(&also_seen)), (0, 0));
    let whole = service.client.get(&path).await;
    assert_eq!(whole.header("etag"), tag, "the history has grown, this has not");
    assert_eq!(sibling.client.get(&path).await.body, whole.body);
    // Another moment's.
    let other = tag.replace(&format!(".a{total}"), &format!(".a{}", total - 1));
    let other = service.client.send(Method::GET, &path, |request| request.header("if-none-match", other));
    assert_eq!(other.await.status, 200);
}

test_over!(what_is_beyond_the_end_is_never_shown, NOTES);
/// Totals beyond what there is are not believed, whoever had them.
async fn what_is_beyond_the_end_is_never_shown(history: &'static History) {
    let (service, seen) = observed(history, MIB).await;
    let (many, few) = (history.pages(20.0), history.pages(5.5));
    service.client.append_all(1, 1..=many).await;
    service.client.append_all(2, 1..=few).await;
    // What the one has had is known now. The other has not come so far.
    assert_eq!(service.client.total(1).await, many);
    let window = format!("?after={}&limit={}", history.page_size, history.pages(2.0).min(100));
    let never = async |owner: u64, as_of: u64, total: u64| {
        taken(&seen);
        let path = history.at(owner, &format!("{window}&asOf={as_of}"));
        let answer = service.client.get(&path).await;
        let body = answer.expect(200);
        assert!(!is_snapshot(&answer) && taken(&seen) > 0, "{path}");
        assert_eq!(body[TOTAL], total, "{path}");
        assert!(answer.header("etag").contains(&format!(".s{total}")), "{answer:?}");
        let next = body["links"]["next"].as_str().expect("there are more");
        assert!(next.ends_with(&format!("asOf={total}")), "a walk goes on with what was: {next}");
    };
    for as_of in [few + 1, few + 5, many - 1, many, many + 1, 9_007_199_254_740_991] {
        never(2, as_of, few).await;
    }
    never(1, many + 1, many).await;
    // Now it has been.
    service.client.append_all(2, few + 1..=few + 2).await;
    let path = history.at(2, &format!("{window}&asOf={}", few + 1));
    let answer = service.client.get(&path).await;
    assert_eq!((&answer.expect(200)[TOTAL], is_snapshot(&answer)), (&json!(few + 1), true));
    never(2, few + 3, few + 2).await;
}

test_over!(another_instance_finds_out_once, NOTES, READINGS);
/// A new process has seen nothing; one look at the tail tells it of all the moments before.
async fn another_instance_finds_out_once(history: &'static History) {
    let service = Service::of(history).await;
    // Windows that are pages, or parts of them.
    let limit = if history.page_size > 100 { 50 } else { history.page_size };
    let total = 32 * limit + limit / 2;
    service.client.append_all(1, 1..=total).await;
    let newest = history.at(1, &format!("?limit={limit}&order=desc"));
    let first = service.client.get(&newest).await.expect(200);
    let next = first["links"]["next"].as_str().expect("there are more").to_owned();
    let mut setup = Setup::on(shared().await).of(history).in_database(&service.database);
    setup.config.api.page_cache = 0;
    service.stop().await;
    let (setup, seen) = observe(setup);
    let service = setup.start().await;
    taken(&seen);
    let (mut path, mut shown) = (next, history.seqs(&first));
    let full = total / history.page_size * history.page_size;
    let mut first_snapshot = true;
    loop {
        let answer = service.client.get(&path).await;
        let body = answer.expect(200);
        let seqs = history.seqs(&body);
        // Windows of parts of a page begin on the tail, which is no moment's.
        if seqs.iter().max().is_some_and(|last| *last <= full) {
            assert_eq!((is_snapshot(&answer), &body[TOTAL]), (true, &json!(total)), "{path}");
            let expected = if first_snapshot && full + limit > total { 2 } else { 1 };
            assert_eq!(taken(&seen), expected, "{path}");
            first_snapshot = false;
        } else {
            taken(&seen);
        }
        shown.extend(seqs);
        match body["links"]["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(shown, (1..=total).rev().collect::<Vec<_>>());
}

test_over!(many_owners_do_not_mix, SMALL);
/// Each is shown its own.
async fn many_owners_do_not_mix(history: &'static History) {
    let service = Service::of(history).await;
    let (two, page) = (history.pages(2.0), history.page_size.min(100));
    for owner in 1..=40 {
        service.client.append_all(owner, 1..=two + owner).await;
    }
    for turn in 0..2 {
        for owner in 1..=40_u64 {
            for as_of in [two + owner, two + 1 + owner] {
                let path = history.at(owner, &format!("?after={}&limit={page}&asOf={as_of}", two - page));
                let answer = service.client.get(&path).await;
                assert_eq!(answer.expect(200)[TOTAL], two + owner, "{path}, turn {turn}");
                assert_eq!(is_snapshot(&answer), as_of == two + owner, "{path}");
            }
        }
    }
}

test_over!(nothing_remembered_is_needed, NOTES);
/// With nothing in memory pages come from the database, by one command and without the tail.
async fn nothing_remembered_is_needed(history: &'static History) {
    let (service, seen) = observed(history, 0).await;
    let total = history.pages(40.5);
    let full = history.pages(40.0);
    service.client.append_all(1, 1..=total).await;
    service.client.total(1).await;
    let most = full.min(100);
    for query in [
        "after=0&limit=10".to_owned(),
        format!("after={}&limit={}", full - history.pages(0.5), history.pages(0.5)),
        format!("after={}&limit={}", history.pages(12.3), most.min(history.pages(10.0))),
        format!("before={}&limit={most}&order=desc", full + 1),
    ] {
        taken(&seen);
        let answer = service.client.get(&history.at(1, &format!("?{query}&asOf={total}"))).await;
        let mut shown = history.seqs(&answer.expect(200));
        assert!(is_snapshot(&answer) && answer.header("server-timing").starts_with("db;dur="), "{answer:?}");
        let plain = service.client.get(&history.at(1, &format!("?{query}"))).await.expect(200);
        assert_eq!(taken(&seen), 1 + 2, "{query}");
        assert_eq!(shown, history.seqs(&plain));
        shown.dedup();
        assert_eq!(shown.len(), plain["items"].as_array().map_or(0, Vec::len));
    }
}
