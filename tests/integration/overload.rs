//! More appends than the queue holds, and clients that do not wait for their answer.

mod shares;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::commands::program::Place;
use crate::harness::uploads::{lines, of, upload};
use crate::harness::{
    Answer, Client, Harm, PATIENCE, Proxy, Setup, TRADES, Way, eventually, shared, spawn, trade,
};

/// The memory of a trade of these tests in the queue, in bytes: 62 of BSON, and a constant part.
const TRADE: usize = 62 + 64;

/// Nothing was stored, and the client may come again.
#[track_caller]
fn overloaded(answer: &Answer) {
    let problem = answer.problem(503, "overloaded");
    assert_eq!(answer.header("retry-after"), "1", "{problem}");
    assert!(problem.get("ranges").is_none() && problem.get("unknownItems").is_none(), "{problem}");
}

fn trades(from: u64, count: u64) -> Value {
    json!((from..from + count).map(trade).collect::<Vec<_>>())
}

fn seqs(appended: &Value) -> Vec<u64> {
    let ranges = appended["ranges"].as_array().expect("ranges");
    let range = |range: &Value| {
        range["firstSeq"].as_u64().expect("a seq")..=range["lastSeq"].as_u64().expect("a seq")
    };
    ranges.iter().flat_map(range).collect()
}

/// Trades in a queue of 1 MiB, rounded down.
const QUEUE: u64 = 8_000;
const EACH: u64 = 1_000;
const CLIENTS: u64 = 10 * QUEUE / EACH;
const CUSTOMERS: u64 = 20;

/// How many addresses the clients have. One has a quarter of the queue.
const ADDRESSES: u64 = 8;

/// A client at one of these addresses.
fn at_address(client: &Client, number: u64) -> Client {
    client.at([127, 0, 1, 1 + (number % ADDRESSES) as u8])
}

/// Appends arrays, each with quantities of its own, until told to stop; returns `seq` and quantity of
/// each trade that was acknowledged, and how often it was refused.
async fn insist(client: Client, number: u64, stop: watch::Receiver<bool>) -> (Vec<(u64, u64)>, u64) {
    let (mut stored, mut refused) = (Vec::new(), 0);
    let mut from = number * 10_000_000 + 1;
    while !*stop.borrow() {
        let answer = client.append(number % CUSTOMERS + 1, &trades(from, EACH)).await;
        if answer.status == 201 {
            stored.extend(seqs(&answer.json()).into_iter().zip(from..from + EACH));
        } else {
            // On a busy machine the database may be what has no time: nothing was stored then, either.
            if answer.json()["type"] == "/problems#database-unavailable" {
                assert_eq!((answer.status.as_u16(), answer.json().get("ranges")), (503, None), "{answer:?}");
            } else {
                overloaded(&answer);
            }
            refused += 1;
        }
        from += EACH;
    }
    (stored, refused)
}

/// What the kernel says of a process's memory, in MiB: now, and at most.
fn memory(pid: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of it");
        line.trim_end_matches(" kB").trim().parse::<u64>().expect("kB") / 1024
    };
    (of("VmRSS:"), of("VmHWM:"))
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_times_more_clients_than_the_queue_holds() {
    let place = Place::new().await;
    let serving = place.serve(&["--max-queue-mib", "1", "--log", "error"]).await;
    let (stop, stopped) = watch::channel(false);
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(insist(at_address(&serving.client, number), number, stopped.clone()));
    }
    // The load itself, which is to last: nothing is waited for.
    tokio::time::sleep_until(Instant::now() + Duration::from_secs(10)).await;
    stop.send_replace(true);
    let (stored, refused): (Vec<_>, Vec<u64>) = clients.join_all().await.into_iter().unzip();
    let mut stored: Vec<(u64, u64)> = stored.into_iter().flatten().collect();
    let refused: u64 = refused.into_iter().sum();
    let (resident, most) = memory(serving.pid());
    println!(
        "{CLIENTS} clients, a queue for a tenth of them: {} appends stored, {refused} refused; {resident} MiB, at most {most} MiB",
        stored.len() as u64 / EACH
    );
    assert!(refused > 0 && !stored.is_empty());
    assert!(most < 192, "memory is bounded: {most} MiB");

    // All of the queue is there again, and as many clients as it holds are all served.
    let client = &serving.client;
    let whole = async || client.append(100, &trades(1, EACH)).await;
    eventually("an append of as many as may be", PATIENCE, || async { whole().await.status == 201 }).await;
    let mut clients = JoinSet::new();
    for number in 0..QUEUE / EACH / 2 {
        let client = at_address(client, number);
        clients.spawn(async move {
            let from = (CLIENTS + number) * 10_000_000 + 1;
            let served = (0..10).map(|turn| from + turn * EACH);
            let mut stored = Vec::new();
            for from in served {
                let appended = client.append(number % CUSTOMERS + 1, &trades(from, EACH)).await.expect(201);
                stored.extend(seqs(&appended).into_iter().zip(from..from + EACH));
            }
            stored
        });
    }
    stored.extend(clients.join_all().await.into_iter().flatten());

    // Invariants 1 to 6; nothing of what was refused.
    let database = place.database().await;
    let mut found = 0;
    for customer in 1..=CUSTOMERS {
        let history = crate::harness::stored(&database, TRADES, customer).await;
        let of = |quantity: u64| quantity / 10_000_000;
        let whose = |quantity: u64| match of(quantity) {
            number if number < CLIENTS => number % CUSTOMERS + 1,
            number => (number - CLIENTS) % CUSTOMERS + 1,
        };
        for (seq, quantity) in stored.iter().filter(|(_, quantity)| whose(*quantity) == customer) {
            assert_eq!(history.numbers.get(*seq as usize - 1), Some(&(*quantity as i64)), "at {seq}");
        }
        found += history.numbers.len();
    }
    assert_eq!(found, stored.len(), "nothing else is stored");
    serving.stop().await;
}

/// Not after a while: while nothing at all can be committed.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_at_once() {
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::on(shared().await);
    setup.connection.uri = proxy.uri();
    setup.capacity.queued_bytes = 100 * TRADE;
    let service = setup.start().await;
    proxy.harm("write", Way::There, Harm::Hold, u32::MAX);
    let mut clients = JoinSet::new();
    for number in 1..=150 {
        let client = at_address(&service.client, number);
        clients.spawn(async move { (number, client.append(number % 40 + 1, &trade(number)).await) });
    }
    let mut refused = BTreeSet::new();
    for _ in 0..50 {
        let (number, answer) = clients.join_next().await.expect("some").expect("no panic");
        overloaded(&answer);
        refused.insert(number as i64);
    }
    // Longer than the whole queue: never, however empty.
    overloaded(&service.client.append(1, &trades(1000, 101)).await);
    assert!(clients.try_join_next().is_none(), "the others wait");
    proxy.relent();
    let mut stored = BTreeSet::new();
    for (number, answer) in clients.join_all().await {
        answer.expect(201);
        stored.insert(number as i64);
    }
    assert_eq!(stored.len(), 100);
    let mut found = Vec::new();
    for customer in 1..=40 {
        found.extend(service.stored(customer).await.numbers);
    }
    found.sort_unstable();
    assert_eq!(found, stored.into_iter().collect::<Vec<_>>(), "and nothing of {refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_whose_commit_takes_long_leaves_room_for_others() {
    const PART: u64 = 25;
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::on(shared().await);
    setup.connection.uri = proxy.uri();
    setup.capacity.queued_bytes = 100 * TRADE;
    let service = setup.start().await;
    let (client, other) = (&service.client, at_address(&service.client, 1));
    proxy.harm("write trades", Way::There, Harm::Hold, 1);
    let mut clients = JoinSet::new();
    let mut append = |number: u64| {
        let client = client.clone();
        clients.spawn(async move { (number, client.append(1, &trade(number)).await) });
    };
    append(1);
    proxy.struck(1).await;
    (2..=PART + 15).for_each(append);
    for _ in 0..15 {
        let (_, answer) = clients.join_next().await.expect("some").expect("no panic");
        overloaded(&answer);
        let problem = answer.json();
        assert!(problem["detail"].as_str().expect("a detail").contains("this history"), "{problem}");
    }
    // An upload to the same history waits, and not in the way of another.
    let of_it = other.clone();
    let of_it = spawn(async move { upload(&of_it, "/v1/customers/1/trades/upload", lines(101..=140)).await });
    for customer in 2..=10 {
        // More than a quarter of the queue, where the customer holds nothing.
        other.append(customer, &trades(1, 60)).await.expect(201);
        let path = format!("/v1/customers/{customer}/trades/upload");
        assert_eq!(upload(&other, &path, lines(61..=90)).await.expect(200)["stored"], 30);
    }
    assert!(!of_it.is_finished() && clients.try_join_next().is_none(), "they wait");
    assert_eq!(proxy.strikes(), 1);
    proxy.relent();
    let mut stored: Vec<i64> = (101..=140).collect();
    for (number, answer) in clients.join_all().await {
        answer.expect(201);
        stored.push(number as i64);
    }
    assert_eq!(stored.len(), 40 + PART as usize);
    assert_eq!(of_it.await.expect("no panic").expect(200)["stored"], 40);
    service.stored(1).await.holds_exactly(stored);
    for customer in 2..=10 {
        assert_eq!(service.stored(customer).await.numbers, (1..=90).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_hang_up_change_nothing() {
    const EACH: u64 = 20;
    let proxy = Proxy::before(shared().await).await;
    let mut setup = Setup::on(shared().await);
    setup.connection.uri = proxy.uri();
    setup.capacity.queued_bytes = 50 * EACH as usize * TRADE;
    let service = setup.start().await;
    proxy.harm("write", Way::There, Harm::Hold, u32::MAX);

    // The queue holds fifty of them: once the one is refused, all others are in.
    let (hang_up, hung_up) = watch::channel(false);
    let (answered, mut answers) = mpsc::unbounded_channel();
    let mut clients = JoinSet::new();
    for number in 1..=51_u64 {
        let (address, mut hung_up, answered) = (service.address(), hung_up.clone(), answered.clone());
        clients.spawn(async move {
            let body = trades(number * 100, EACH).to_string();
            let socket = TcpSocket::new_v4().expect("a socket");
            socket
                .bind(([127, 0, 1, 1 + (number % ADDRESSES) as u8], 0).into())
                .expect("an address of this machine");
            let mut stream = socket.connect(address).await.expect("a connection");
            let request = format!(
                "POST /v1/customers/{}/trades HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\
                 Content-Type: application/json\r\n\r\n{body}",
                number % 7 + 1,
                body.len(),
            );
            stream.write_all(request.as_bytes()).await.expect("to send");
            let mut answer = [0; 64];
            tokio::select! {
                read = stream.read(&mut answer) => {
                    let status = String::from_utf8_lossy(&answer[..read.expect("an answer")]).into_owned();
                    answered.send((number, status)).expect("the test goes on");
                }
                _ = hung_up.changed() => {
                    stream.shutdown().await.expect("to hang up");
                    // The server ends its side once it has seen that.
                    let mut rest = Vec::new();
                    stream.read_to_end(&mut rest).await.ok();
                    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
                }
            }
        });
    }
    let (refused, status) = answers.recv().await.expect("an answer");
    assert!(status.starts_with("HTTP/1.1 503 "), "{status}");
    assert!(!history_is_begun(&service.database).await, "all of them are under way");
    hang_up.send_replace(true);
    clients.join_all().await;
    proxy.relent();

    let client = &service.client;
    let whole = || async { client.append(100, &trades(1, 50 * EACH)).await.status == 201 };
    eventually("an empty queue", PATIENCE, whole).await;
    let mut expected = BTreeSet::new();
    let mut found = Vec::new();
    for customer in 1..=7 {
        found.extend(service.stored(customer).await.numbers);
    }
    for number in (1..=51_u64).filter(|number| *number != refused) {
        expected.extend((number * 100..number * 100 + EACH).map(|quantity| quantity as i64));
    }
    found.sort_unstable();
    assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "each once, but for those of {refused}");
}

/// However large they are and however many: they wait for each other, and nobody else does.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_leave_room_for_others() {
    const UPLOADS: u64 = 8;
    const LINES: u64 = 8_000;
    let mut setup = Setup::on(shared().await);
    // Less than the uploads have waiting.
    setup.capacity.queued_bytes = 2_000 * TRADE;
    let service = setup.start().await;
    let mut uploads = JoinSet::new();
    for number in 1..=UPLOADS {
        let client = at_address(&service.client, number);
        uploads.spawn(async move {
            if number % 2 == 0 {
                return upload(&client, &format!("/v1/customers/{number}/trades/upload"), lines(1..=LINES))
                    .await;
            }
            let many = (1..=LINES).map(|qty| of(number * 1_000 + qty % 50, qty)).collect::<String>();
            upload(&client, "/v1/trades/upload", many).await
        });
    }
    let (mut appended, mut stored) = (0, 0);
    while stored < UPLOADS {
        while let Some(ended) = uploads.try_join_next() {
            assert_eq!(ended.expect("no panic").expect(200)["stored"], LINES);
            stored += 1;
        }
        // As many as may be at once beside them.
        appended += 1;
        service.client.append(100, &trades(appended * 10_000, 1_000)).await.expect(201);
    }
    println!("{appended} appends beside {UPLOADS} uploads");
    assert_eq!(service.stored(2).await.numbers, (1..=LINES as i64).collect::<Vec<_>>());
}

async fn history_is_begun(database: &mongodb::Database) -> bool {
    let trades = database.collection::<mongodb::bson::Document>("trades");
    trades.find_one(mongodb::bson::doc! {}).await.expect("an answer").is_some()
}
