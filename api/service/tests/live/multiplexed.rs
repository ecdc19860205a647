//! Many readers of one owner, over few connections of HTTP/2.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use h2::client::Builder;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::connections::wire::{Begun, Http2, plain};
use crate::harness::{Setup, TRADES, amount, shared};

/// Streams of one connection: fewer than it may have at once.
const OF_CONNECTION: u64 = 100;

/// Appends, at 500 a second, after which all streams must have them.
const AT_ONCE: u64 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// Reads until an event ends with the item of this number.
async fn read_to(stream: &mut (Begun, String), number: u64) {
    let (begun, text) = stream;
    let last = format!("id: {number}\n");
    while !(text.rfind("id: ").is_some_and(|id| text[id..].starts_with(&last)) && text.ends_with("\n\n")) {
        let piece = begun.piece().await.expect("more").expect("no fault");
        text.push_str(std::str::from_utf8(&piece).expect("UTF-8"));
    }
}

/// The numbers of all items in the text of a stream.
fn seqs(text: &str) -> impl Iterator<Item = u64> {
    let after = text.split("\"seq\":").skip(1);
    after.map(|rest| rest.split(',').next().and_then(|seq| seq.parse().ok()).expect("a number"))
}

/// What is appended is read at most once for all clients of an instance, whichever instance took it: one item
/// after the other, and at 500 a second.
#[tokio::test(flavor = "multi_thread")]
async fn reads_of_an_append_do_not_grow_with_clients() {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let setup = Setup::on(shared().await).observed(move |name, command| {
        if name == "find" && command.get_str("find").is_ok_and(|find| find == TRADES.name) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let service = setup.start().await;
    let other = service.sibling(shared().await).await;
    let (mut last, mut costs) = (0, Vec::new());
    for readers in [1, amount(250, 1_000)] {
        let first = last + 1;
        let (mut connections, mut streams) = (Vec::new(), Vec::new());
        while (streams.len() as u64) < readers {
            // On a busy machine many small frames wait until they are read: the library would end the
            // connection.
            let mut builder = Builder::new();
            builder.data_frame_budget(usize::MAX / 2);
            let connection = Http2::with(&builder, plain(service.address()).await).await.expect("to begin");
            let path = TRADES.at(7, &format!("/live?after={last}"));
            let opened = OF_CONNECTION.min(readers - streams.len() as u64);
            let opened = join_all((0..opened).map(|_| connection.get(&path))).await;
            assert!(opened.iter().all(|begun| begun.status == 200));
            streams.extend(opened.into_iter().map(|begun| (begun, String::new())));
            connections.push(connection);
        }
        let before = reads.load(Ordering::Relaxed);
        for client in [&service.client, &other.client].repeat(5) {
            last += 1;
            client.append_all(7, last..=last).await;
            join_all(streams.iter_mut().map(|stream| read_to(stream, last))).await;
        }
        costs.push(reads.load(Ordering::Relaxed) - before);
        for (_, text) in &streams {
            let ids = (last - 9..=last).map(|number| format!("id: {number}\n"));
            assert!(ids.into_iter().all(|id| text.matches(&id).count() == 1), "{text}");
        }
        let (before, began, rounds) = (reads.load(Ordering::Relaxed), Instant::now(), amount(1, 30));
        for _ in 0..rounds {
            let append = async {
                let mut appends = JoinSet::new();
                for number in last + 1..=last + AT_ONCE {
                    let client = [&service.client, &other.client][number as usize % 2].clone();
                    appends.spawn(async move { client.append_all(7, number..=number).await });
                    sleep(PAUSE).await;
                }
                appends.join_all().await;
            };
            tokio::join!(append, join_all(streams.iter_mut().map(|stream| read_to(stream, last + AT_ONCE))));
            last += AT_ONCE;
        }
        let (appends, reads, seconds) =
            (rounds * AT_ONCE, reads.load(Ordering::Relaxed) - before, began.elapsed().as_secs_f64());
        let [appended, read] = [appends as f64, reads as f64].map(|count| count / seconds);
        println!("{readers} readers: {appended:.0} appends/s, {read:.0} reads/s");
        assert!(streams.iter().all(|(_, text)| seqs(text).eq(first..=last)), "{readers} readers");
        // A read that finds two pages is followed by another.
        assert!(reads as u64 <= 2 * appends, "{readers} readers: {reads} reads of {appends} appends");
    }
    // At most one for each append of the instance itself, none for those of the other: the change says what
    // they are.
    assert!(costs.iter().all(|reads| *reads <= 5), "{costs:?}");
}
