//! Tests of a committer whose policy treats each request as the request says.

use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::append::group_commit::{NoAnswer, Pending, Queue, Ticket};
use crate::mongo::{COMMAND, Deadline};

/// What a commit does with a request.
enum Fate {
    Store,
    /// Refuses it once.
    Refuse,
    /// Ends without an answer.
    Panic,
    /// Ends the step of the committer that takes it.
    PanicWhenTaken,
    /// Waits for a signal before it stores the request.
    Hold(oneshot::Receiver<()>),
}

struct TestRequest {
    key: u64,
    name: &'static str,
    fate: Fate,
    refusals: u32,
    ticket: Ticket<()>,
}

#[derive(Debug, PartialEq, Eq)]
enum TestEvent {
    /// A commit begins, with these requests.
    Commit(Vec<&'static str>),
    Lost(u64),
}

struct Scripted(mpsc::UnboundedSender<TestEvent>);

impl Messages for Scripted {
    type Key = u64;
    type Request = TestRequest;
    type Settled = (u64, Vec<TestRequest>);
}

impl BatchPolicy<Self> for Scripted {
    type Batch = (u64, Vec<TestRequest>);

    fn key(request: &TestRequest) -> u64 {
        request.key
    }

    fn refusals(request: &TestRequest) -> u32 {
        request.refusals
    }

    fn next_batch(&mut self, key: &u64, waiting: &mut VecDeque<TestRequest>) -> Option<(Self::Batch, usize)> {
        assert!(!waiting.iter().any(|request| matches!(request.fate, Fate::PanicWhenTaken)), "of the test");
        Some(((*key, waiting.drain(..).filter(|request| request.ticket.take()).collect()), 1))
    }

    fn commit(
        &self,
        batches: Vec<Self::Batch>,
        committer: Handle<Self>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let names = batches.iter().flat_map(|(_, requests)| requests).map(|request| request.name);
        self.0.send(TestEvent::Commit(names.collect())).unwrap();
        async move {
            for (key, requests) in batches {
                let (mut done, mut again) = (Vec::new(), Vec::new());
                for mut request in requests {
                    match std::mem::replace(&mut request.fate, Fate::Store) {
                        Fate::Store => done.push(request),
                        // As after many refusals: the pause is then long enough for other commits.
                        Fate::Refuse => again.push(TestRequest { refusals: MOST_DOUBLINGS + 1, ..request }),
                        Fate::Panic | Fate::PanicWhenTaken => panic!("of the test"),
                        Fate::Hold(until) => {
                            until.await.unwrap();
                            done.push(request);
                        }
                    }
                }
                committer.settled((key, again));
                done.into_iter().for_each(|request| request.ticket.answer(()));
            }
        }
    }

    fn settle(&mut self, settled: (u64, Vec<TestRequest>)) -> (u64, Vec<TestRequest>) {
        settled
    }

    fn lost(&mut self, key: &u64) {
        self.0.send(TestEvent::Lost(*key)).unwrap();
    }
}

/// A committer and the events that it causes.
struct Rig {
    committer: Handle<Scripted>,
    events: mpsc::UnboundedReceiver<TestEvent>,
    queue: Queue,
}

impl Rig {
    fn new() -> Self {
        let (events, seen) = mpsc::unbounded_channel();
        let queue = Queue::new(100, Duration::ZERO, "of_the_test");
        Self { committer: start(Scripted(events)), events: seen, queue }
    }

    fn send(&self, key: u64, name: &'static str, fate: Fate) -> Pending<()> {
        let (ticket, pending) =
            Ticket::new(Deadline::within(COMMAND), self.queue.reserve(key, None, 1, 100).unwrap());
        assert!(self.committer.request(TestRequest { key, name, fate, refusals: 0, ticket }));
        pending
    }

    /// Keeps the committer busy until the sender is used.
    async fn hold(&mut self, key: u64, name: &'static str) -> (oneshot::Sender<()>, Pending<()>) {
        let (release, held) = oneshot::channel();
        let pending = self.send(key, name, Fate::Hold(held));
        assert_eq!(self.events.recv().await, Some(TestEvent::Commit(vec![name])));
        (release, pending)
    }
}

#[tokio::test]
async fn a_commit_that_panics_frees_its_keys() {
    let mut rig = Rig::new();
    let (release, held) = rig.hold(9, "held").await;
    let lost = [rig.send(1, "a", Fate::Store), rig.send(2, "b", Fate::Panic), rig.send(3, "c", Fate::Store)];
    let waits = rig.send(2, "d", Fate::Store);
    release.send(()).unwrap();
    assert_eq!(held.answer().await, Ok(()));
    assert_eq!(rig.events.recv().await, Some(TestEvent::Commit(vec!["a", "b", "d", "c"])));
    // The batch before the panic was settled; the others get no answer.
    let told = join_all(lost.into_iter().chain([waits]).map(Pending::answer)).await;
    assert_eq!(told, [Ok(()), Err(NoAnswer::Lost), Err(NoAnswer::Lost), Err(NoAnswer::Lost)]);
    assert_eq!(rig.events.recv().await, Some(TestEvent::Lost(2)));
    assert_eq!(rig.events.recv().await, Some(TestEvent::Lost(3)));
    for key in [1, 2, 3] {
        assert_eq!(rig.send(key, "after", Fate::Store).answer().await, Ok(()), "key {key}");
    }
    rig.queue.drain().await;
}

#[tokio::test]
async fn a_committer_outlives_its_panics() {
    let mut rig = Rig::new();
    let (release, held) = rig.hold(9, "held").await;
    let lost = [
        rig.send(1, "a", Fate::Store),
        rig.send(2, "b", Fate::PanicWhenTaken),
        rig.send(3, "c", Fate::Store),
    ];
    release.send(()).unwrap();
    assert_eq!(held.answer().await, Ok(()));
    assert_eq!(join_all(lost.map(Pending::answer)).await, [Err(NoAnswer::Lost); 3]);
    for key in [1, 2, 3, 9] {
        assert_eq!(rig.send(key, "after", Fate::Store).answer().await, Ok(()), "key {key}");
    }
    rig.queue.drain().await;
}

#[tokio::test]
async fn a_refused_key_pauses_and_others_do_not() {
    let mut overtaken = false;
    // A slow machine may miss the pause, but hardly every time.
    for _ in 0..20 {
        let mut rig = Rig::new();
        let (release, held) = rig.hold(9, "held").await;
        let refused = rig.send(1, "refused", Fate::Refuse);
        let (also, last) = (rig.send(1, "also refused", Fate::Refuse), rig.send(2, "other", Fate::Store));
        release.send(()).unwrap();
        let first = rig.events.recv().await;
        assert_eq!(first, Some(TestEvent::Commit(vec!["refused", "also refused", "other"])));
        assert_eq!((held.answer().await, last.answer().await), (Ok(()), Ok(())));
        let new = (rig.send(1, "new", Fate::Store), rig.send(3, "meanwhile", Fate::Store));
        overtaken = rig.events.recv().await == Some(TestEvent::Commit(vec!["meanwhile"]));
        if overtaken {
            let next = rig.events.recv().await;
            assert_eq!(next, Some(TestEvent::Commit(vec!["refused", "also refused", "new"])), "in order");
        }
        let all = [refused, also, new.0, new.1].map(Pending::answer);
        assert_eq!(join_all(all).await, [Ok(()); 4]);
        if overtaken {
            break;
        }
    }
    assert!(overtaken, "another key is committed while the refused one pauses");
}

/// Even if requests of disconnected clients still wait.
#[tokio::test]
async fn a_committer_without_a_handle_ends() {
    let mut rig = Rig::new();
    let (release, held) = rig.hold(1, "held").await;
    let waits = rig.send(1, "waits", Fate::Store);
    let Rig { committer, mut events, .. } = rig;
    drop(committer);
    release.send(()).unwrap();
    assert_eq!(held.answer().await, Ok(()));
    assert_eq!(waits.answer().await, Err(NoAnswer::Lost));
    assert_eq!(events.recv().await, None, "its policy is gone");
}

#[test]
fn pauses_grow_and_stay_short() {
    for refusals in 1..=100 {
        let longest = PAUSE * 2_u32.pow((refusals - 1).min(MOST_DOUBLINGS));
        assert!((longest / 2..=longest).contains(&pause(refusals)), "{refusals}");
    }
    assert!(PAUSE * 2_u32.pow(MOST_DOUBLINGS) < Duration::from_millis(50));
}
