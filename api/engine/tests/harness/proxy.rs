//! A wire between the driver and a mongod, which can be cut at a chosen message.
//!
//! A fail point of mongod acts before a command runs. What is lost after it ran, on the way back,
//! only something between the two can lose.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::rig::WRITES;
use super::{ALL, Mongod, spawn};

/// Whether commands on a collection are counted: those on the collections that an append touches.
fn is_counted(collection: &str) -> bool {
    collection == "idempotency_keys" || ALL.iter().any(|history| history.name == collection)
}

/// Forwards every connection to a mongod, and harms those that it is told to. Ends with this value.
pub struct Proxy {
    address: SocketAddr,
    wire: Arc<Wire>,
    accepting: AbortHandle,
}

/// On which way a message is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Before the server has it.
    There,
    /// After the server has run it, before the client hears.
    Back,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// It is lost, and its connection with it.
    Cut,
    /// It waits for [`Proxy::relent`], and everything behind it on its connection.
    Hold,
    /// It waits for [`Proxy::relent`], and is lost then, and its connection with it.
    HoldAndCut,
}

struct Wire {
    server: SocketAddr,
    harm: Mutex<Option<Rule>>,
    /// Those that were counted since they were last forgotten.
    commands: Mutex<Vec<Nth>>,
    /// Messages harmed so far.
    struck: watch::Sender<u32>,
    /// Counts the times it relented.
    relented: watch::Sender<u32>,
    /// How many seconds the server's time is set back in its answers.
    set_back: AtomicU32,
    /// How many seconds its clock is ahead in its answers.
    ahead: AtomicU32,
}

struct Rule {
    of: Of,
    way: Way,
    harm: Harm,
    times: u32,
}

/// Which messages a rule is about.
enum Of {
    /// Those of commands of this name, as `update`, or `update trades`.
    Command(String),
    /// That of one command.
    Once(Nth),
}

/// A command on a collection that [`is_counted`]: its name, as `update trades`, and how many of that
/// name there were before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nth(pub String, pub usize);

impl fmt::Display for Nth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let again = if self.1 > 0 { " again" } else { "" };
        write!(f, "{}{again}", self.0)
    }
}

/// A command that was sent.
struct Asked {
    id: u32,
    /// As `update`.
    name: String,
    /// As `update trades`, where it is about a collection.
    whole: String,
    /// If it is counted.
    nth: Option<Nth>,
}

impl Proxy {
    pub async fn before(mongod: &Mongod) -> Self {
        Self::to(mongod.address()).await
    }

    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let wire = Arc::new(Wire {
            server,
            harm: Mutex::new(None),
            commands: Mutex::default(),
            struck: watch::Sender::new(0),
            relented: watch::Sender::new(0),
            set_back: AtomicU32::new(0),
            ahead: AtomicU32::new(0),
        });
        let accepted = Arc::clone(&wire);
        let accepting = spawn(async move {
            // Connections end with this set.
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(Arc::clone(&accepted).connection(client));
            }
        });
        Self { address, wire, accepting: accepting.abort_handle() }
    }

    pub fn uri(&self) -> String {
        format!("mongodb://{}/?directConnection=true", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forgets the commands counted so far.
    pub fn forget(&self) {
        self.wire.commands.lock().expect("no test panics here").clear();
    }

    /// Commands on the collections that an append touches, in the order in which they were sent.
    pub fn commands(&self) -> Vec<Nth> {
        self.wire.commands.lock().expect("no test panics here").clone()
    }

    /// Forgets the commands counted so far, and harms one of those that follow.
    pub fn harm_nth(&self, command: Nth, way: Way, harm: Harm) {
        self.forget();
        let rule = Rule { of: Of::Once(command), way, harm, times: 1 };
        *self.wire.harm.lock().expect("no test panics here") = Some(rule);
    }

    /// Harms the next messages of this command, so many times: of a command alone or with its collection, as
    /// `find` or `find trades`. `write` is each command that stores items.
    pub fn harm(&self, command: impl Into<String>, way: Way, harm: Harm, times: u32) {
        *self.wire.harm.lock().expect("no test panics here") =
            Some(Rule { of: Of::Command(command.into()), way, harm, times });
    }

    /// Harms no more, and lets go what it holds.
    pub fn relent(&self) {
        *self.wire.harm.lock().expect("no test panics here") = None;
        self.wire.relented.send_modify(|times| *times += 1);
    }

    /// Lets go what it holds, and harms the next messages of this command.
    pub fn relent_but(&self, command: impl Into<String>, way: Way, harm: Harm, times: u32) {
        self.harm(command, way, harm, times);
        self.wire.relented.send_modify(|times| *times += 1);
    }

    /// Sets the `operationTime` of the answers that follow back by so many seconds: to a client that is told
    /// the right time later it is as if its machine had slept for as long.
    pub fn set_back(&self, seconds: u32) {
        self.wire.set_back.store(seconds, Ordering::Relaxed);
    }

    /// Puts the `localTime` of the answers that follow ahead by `seconds`, as if the server's clock were
    /// wrong.
    pub fn put_ahead(&self, seconds: u32) {
        self.wire.ahead.store(seconds, Ordering::Relaxed);
    }

    /// Waits until it has harmed so many messages, since it began.
    pub async fn struck(&self, times: u32) {
        let mut struck = self.wire.struck.subscribe();
        struck.wait_for(|struck| *struck >= times).await.expect("the proxy to live");
    }

    /// How many messages it has harmed.
    pub fn strikes(&self) -> u32 {
        *self.wire.struck.borrow()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Wire {
    /// One connection, until either side or a harm ends it.
    async fn connection(self: Arc<Self>, client: TcpStream) {
        let Ok(server) = TcpStream::connect(self.server).await else { return };
        client.set_nodelay(true).ok();
        server.set_nodelay(true).ok();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        // Requests whose answers a rule may be about.
        let asked = Mutex::new(Vec::<Asked>::new());
        let there = async {
            while let Some(message) = read(&mut from_client).await {
                if let Some((name, collection)) = command(&message) {
                    let command = self.asked(word(&message, 4), name, collection);
                    if !self.may_pass(&command, Way::There).await {
                        return;
                    }
                    asked.lock().expect("no test panics here").push(command);
                }
                if to_server.write_all(&message).await.is_err() {
                    return;
                }
            }
        };
        let back = async {
            while let Some(mut message) = read(&mut from_server).await {
                set_back(&mut message, self.set_back.load(Ordering::Relaxed));
                put_ahead(&mut message, self.ahead.load(Ordering::Relaxed));
                let answered = word(&message, 8);
                let command = {
                    let mut asked = asked.lock().expect("no test panics here");
                    let at = asked.iter().position(|command| command.id == answered);
                    at.map(|at| asked.swap_remove(at))
                };
                if let Some(command) = command
                    && !self.may_pass(&command, Way::Back).await
                {
                    return;
                }
                if to_client.write_all(&message).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = there => {}
            () = back => {}
        }
    }

    /// Counts a command, if its collection is a counted one.
    fn asked(&self, id: u32, name: String, collection: Option<String>) -> Asked {
        let collection = collection.unwrap_or_default();
        let whole = format!("{name} {collection}");
        let nth = is_counted(&collection).then(|| {
            let mut commands = self.commands.lock().expect("no test panics here");
            let nth = Nth(whole.clone(), commands.iter().filter(|Nth(name, _)| *name == whole).count());
            commands.push(nth.clone());
            nth
        });
        Asked { id, name, whole, nth }
    }

    /// Waits for as long as a message is held; false when it is to be lost.
    async fn may_pass(&self, command: &Asked, way: Way) -> bool {
        let mut relented = self.relented.subscribe();
        let harm = {
            let mut rule = self.harm.lock().expect("no test panics here");
            let Some(rule) = rule.as_mut() else { return true };
            let meant = match &rule.of {
                Of::Command(name) => {
                    let is = |name: &str| name == command.name || name == command.whole;
                    let rest = name.strip_prefix("write");
                    is(name)
                        || rest.is_some_and(|rest| WRITES.iter().any(|write| is(&format!("{write}{rest}"))))
                }
                Of::Once(nth) => command.nth.as_ref() == Some(nth),
            };
            if !meant || rule.way != way || rule.times == 0 {
                return true;
            }
            rule.times -= 1;
            rule.harm
        };
        self.struck.send_modify(|struck| *struck += 1);
        if harm == Harm::Cut {
            return false;
        }
        relented.changed().await.is_ok() && harm == Harm::Hold
    }
}

/// One message of the wire protocol, whole.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut message = vec![0; 4];
    stream.read_exact(&mut message).await.ok()?;
    let length = word(&message, 0) as usize;
    message.resize(length.max(16), 0);
    stream.read_exact(&mut message[4..]).await.ok()?;
    Some(message)
}

/// Sets back the `operationTime`: an element of type 17, four bytes of a counter, four of seconds.
fn set_back(message: &mut [u8], seconds: u32) {
    const NAME: &[u8] = b"\x11operationTime\0";
    let Some(at) = message.windows(NAME.len()).position(|bytes| bytes == NAME) else { return };
    let at = at + NAME.len() + 4;
    let told = word(message, at).saturating_sub(seconds);
    message[at..at + 4].copy_from_slice(&told.to_le_bytes());
}

/// Puts the `localTime` ahead: an element of type 9, eight bytes of milliseconds.
fn put_ahead(message: &mut [u8], seconds: u32) {
    const NAME: &[u8] = b"\x09localTime\0";
    let Some(at) = message.windows(NAME.len()).position(|bytes| bytes == NAME) else { return };
    let at = at + NAME.len()..at + NAME.len() + 8;
    let told = i64::from_le_bytes(message[at.clone()].try_into().expect("eight bytes"));
    message[at].copy_from_slice(&(told + i64::from(seconds) * 1000).to_le_bytes());
}

fn word(message: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(message[at..at + 4].try_into().expect("four bytes"))
}

/// The command of an OP_MSG: the name of the first element of its body, and its value where that is
/// a text, which is a collection. (MongoDB wire protocol, "OP_MSG": 16 bytes of header, 4 of flags,
/// and a section of kind 0, which is a document.)
fn command(message: &[u8]) -> Option<(String, Option<String>)> {
    const OP_MSG: u32 = 2013;
    const TEXT: u8 = 2;
    if word(message, 12) != OP_MSG || message.get(20) != Some(&0) {
        return None;
    }
    let kind = *message.get(25)?;
    let name = until_zero(message.get(26..)?)?;
    // A text is its length in four bytes, and its bytes, ended by a zero.
    let value = message.get(26 + name.len() + 1 + 4..).filter(|_| kind == TEXT);
    let value = value.and_then(until_zero).map(str::to_owned);
    Some((name.to_owned(), value))
}

fn until_zero(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    str::from_utf8(&bytes[..end]).ok()
}
