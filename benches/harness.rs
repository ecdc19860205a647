//! What the suites share: a mongod and a PostgreSQL, contenders behind the same shell, load, blocks in turns,
//! and reports.

mod block;
mod client;
mod customers;
mod history;
mod layout;
mod limits;
mod mongod;
mod pages;
pub mod peers;
mod postgres;
mod processor;
mod report;
mod server;
mod settings;
mod stage;
mod stats;
mod token;
mod turns;
mod work;

pub use self::{block::*, client::*, customers::*, history::*, layout::*, limits::*, mongod::*, pages::*};
pub use self::{
    postgres::*, processor::*, report::*, server::*, settings::*, stage::*, stats::*, token::*, turns::*,
    work::*,
};

/// Any error ends the run.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// A suite that is being run.
pub struct Bench {
    pub settings: Settings,
    pub mongod: Mongod,
    /// In suites in which it is a contender, where it is installed.
    pub postgres: Option<Postgres>,
}

/// Runs load in a thread and a runtime of its own: a scheduler shared with the servers would let them wake
/// each other at no cost.
pub async fn on_its_own<T: Send + 'static>(
    load: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(load)
    };
    tokio::task::spawn_blocking(run).await?
}
