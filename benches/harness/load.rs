//! A closed loop of connections: each sends its next request when the last is answered.
//!
//! A closed loop slows down with the server, so its latencies are those of this number of connections and say
//! nothing of a server that is asked for more than it can do.

use std::net::SocketAddr;
use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::task::JoinSet;

use super::Result;
use super::block::{Block, Window, take_quantities};
use super::client::{Client, Key};
use super::customers::Customers;
use super::settings::Timing;

/// What a connection does again and again.
pub trait Task: Clone + Send + 'static {
    /// Once, and notes it; false when nothing is left to be done.
    ///
    /// # Errors
    /// An answer that is none to what was asked: the run ends.
    fn turn(
        &mut self,
        client: &mut Client,
        rng: &mut StdRng,
        window: Window,
        block: &mut Block,
    ) -> impl Future<Output = Result<bool>> + Send;
}

/// What the connections do.
#[derive(Clone)]
pub struct Load<T> {
    pub connections: usize,
    /// Each connection has a clone.
    pub task: T,
    /// `None`: until nothing is left to be done.
    pub timing: Option<Timing>,
    pub seed: u64,
}

impl<T> Load<T> {
    pub fn window(&self) -> Window {
        self.timing.map_or_else(Window::unbounded, Window::open)
    }
}

/// Posts trades.
#[derive(Clone)]
pub struct Append {
    /// Trades in a request: 1 is sent as one trade, more as an array.
    pub trades: u64,
    pub customers: Customers,
    /// Whether each request has a key of its own.
    pub keyed: bool,
}

impl Task for Append {
    async fn turn(
        &mut self,
        client: &mut Client,
        rng: &mut StdRng,
        window: Window,
        block: &mut Block,
    ) -> Result<bool> {
        let Some(customer) = self.customers.pick(rng) else { return Ok(false) };
        let (quantities, sent) = (take_quantities(self.trades), Instant::now());
        let key = self.keyed.then(Key::fresh);
        let stored = client.append(customer, &quantities, key).await.unwrap_or(false);
        block.answered(window, sent, self.trades, stored);
        block.appended(&quantities, stored);
        Ok(true)
    }
}

/// Puts a server under load, from one thread of its own.
pub async fn run<T: Task>(address: SocketAddr, load: Load<T>) -> Result<Block> {
    let on_its_own = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(drive(address, &load))
    };
    tokio::task::spawn_blocking(on_its_own).await?
}

async fn drive<T: Task>(address: SocketAddr, load: &Load<T>) -> Result<Block> {
    let window = load.window();
    let mut connections = JoinSet::new();
    for number in 0..load.connections as u64 {
        let rng = StdRng::seed_from_u64(load.seed.wrapping_add(number));
        connections.spawn(connection(address, load.task.clone(), window, rng));
    }
    let blocks: Result<Vec<Block>> = connections.join_all().await.into_iter().collect();
    Ok(Block::merge(blocks?, window))
}

async fn connection<T: Task>(
    address: SocketAddr,
    mut task: T,
    window: Window,
    mut rng: StdRng,
) -> Result<Block> {
    let (mut client, mut block) = (Client::new(address), Block::default());
    while !window.is_over() && task.turn(&mut client, &mut rng, window, &mut block).await? {}
    Ok(block)
}
