//! A closed loop of connections: each sends its next request when the last is answered.
//!
//! A closed loop slows down with the server, so its latencies are those of this number of connections and say
//! nothing of a server that is asked for more than it can do.

use std::net::SocketAddr;
use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::task::JoinSet;

use crate::Result;
use crate::block::{Block, Window, take_quantities};
use crate::client::Client;
use crate::customers::Customers;
use crate::settings::Timing;

/// What the connections do.
#[derive(Clone)]
pub struct Load {
    pub connections: usize,
    /// Trades in a request: 1 is sent as one trade, more as an array.
    pub trades: u64,
    pub customers: Customers,
    /// `None`: until every customer has had a turn.
    pub timing: Option<Timing>,
    pub seed: u64,
}

impl Load {
    pub fn window(&self) -> Window {
        self.timing.map_or_else(Window::unbounded, Window::open)
    }
}

/// Puts a server under load, from one thread of its own.
pub async fn run(address: SocketAddr, load: Load) -> Result<Block> {
    let on_its_own = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(drive(address, &load))
    };
    tokio::task::spawn_blocking(on_its_own).await?
}

async fn drive(address: SocketAddr, load: &Load) -> Result<Block> {
    let window = load.window();
    let mut connections = JoinSet::new();
    for number in 0..load.connections {
        connections.spawn(connection(address, load.clone(), window, number as u64));
    }
    Ok(Block::merge(connections.join_all().await, window))
}

async fn connection(address: SocketAddr, load: Load, window: Window, number: u64) -> Block {
    let mut rng = StdRng::seed_from_u64(load.seed.wrapping_add(number));
    let (mut client, mut block) = (Client::new(address), Block::default());
    while !window.is_over()
        && let Some(customer) = load.customers.pick(&mut rng)
    {
        let (quantities, sent) = (take_quantities(load.trades), Instant::now());
        let stored = client.append(customer, &quantities).await.unwrap_or(false);
        block.answered(window, sent, &quantities, stored);
    }
    block
}
