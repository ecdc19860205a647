//! The limits: our `update` commands by a bare driver, without HTTP and without decisions.
//!
//! It knows beforehand what ours must find out (which trades go together, where each customer's last bucket
//! is), so no server that sends these commands can be faster.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::{ClientSession, Database};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::{Block, COLLECTION, Result, Window, take_quantities};

/// What is sent again and again: statements, one bucket each.
#[derive(Clone, Copy)]
pub struct Commands {
    /// At once.
    pub senders: usize,
    /// Of each sender.
    pub customers: usize,
    /// In one command. More than customers: the command is ordered, and a customer's buckets follow each
    /// other.
    pub statements: usize,
    /// In one statement. Divides ten, so that a bucket ends with a statement.
    pub trades: u64,
}

/// A bare driver. The state of its senders outlives a block.
pub struct Limit(Vec<Arc<Mutex<Sender>>>);

struct Sender {
    database: Database,
    commands: Commands,
    session: ClientSession,
    /// Of the latest command; above all that the driver counts by itself.
    number: i64,
    tails: Vec<Tail>,
    next: usize,
}

#[derive(Clone, Copy)]
struct Tail {
    customer: usize,
    page: u64,
    count: u64,
}

impl Limit {
    pub async fn new(database: &Database, commands: Commands) -> Result<Self> {
        let mut senders = Vec::new();
        for sender in 0..commands.senders {
            let session = database.client().start_session().causal_consistency(false).await?;
            let first = sender * commands.customers + 1;
            let tails =
                (first..).take(commands.customers).map(|customer| Tail { customer, page: 1, count: 0 });
            let (database, tails) = (database.clone(), tails.collect());
            let sender = Sender { database, commands, session, number: 1 << 40, tails, next: 0 };
            senders.push(Arc::new(Mutex::new(sender)));
        }
        Ok(Self(senders))
    }

    /// Sends until the window is over.
    pub async fn block(&self, window: Window) -> Result<Block> {
        let mut senders = JoinSet::new();
        for sender in self.0.iter().map(Arc::clone) {
            senders.spawn(async move { sender.lock().await.send(window).await });
        }
        let blocks: Result<Vec<Block>> = senders.join_all().await.into_iter().collect();
        Ok(Block::merge(blocks?, window))
    }
}

impl Sender {
    /// A refused command ends the run: then this is no limit.
    async fn send(&mut self, window: Window) -> Result<Block> {
        let mut block = Block::default();
        let trades = self.commands.statements as u64 * self.commands.trades;
        while !window.is_over() {
            let (quantities, sent) = (take_quantities(trades), Instant::now());
            self.update(quantities.clone()).await?;
            block.answered(window, sent, trades, true);
            block.appended(&quantities, true);
        }
        Ok(block)
    }

    /// One command, with session and number as ours has them.
    async fn update(&mut self, quantities: Range<u64>) -> Result<()> {
        let Commands { customers, statements, trades, .. } = self.commands;
        let now = DateTime::now();
        let updates = quantities.step_by(trades as usize).map(|first| {
            let tail = &mut self.tails[self.next];
            self.next = (self.next + 1) % customers;
            let statement = upsert(*tail, first..first + trades, now);
            tail.count += trades;
            if tail.count == 10 {
                *tail = Tail { page: tail.page + 1, count: 0, ..*tail };
            }
            Bson::from(statement)
        });
        let updates: Vec<Bson> = updates.collect();
        self.number += 1;
        let command = doc! {
            "update": COLLECTION,
            "updates": updates,
            "ordered": statements > customers,
            "writeConcern": { "w": "majority", "j": true },
            "txnNumber": self.number,
        };
        let reply = self.database.run_command(command).session(&mut self.session).await?;
        if reply.get_i32("n")? as usize != statements || reply.contains_key("writeConcernError") {
            return Err(format!("a bare command was refused: {reply}").into());
        }
        Ok(())
    }
}

/// The statement of our store for an open page. Those that open pages have a fence besides.
fn upsert(tail: Tail, quantities: Range<u64>, now: DateTime) -> Document {
    let trade = |quantity| doc! { "type": "buy", "ticker": "MDB", "qty": quantity as i64, "date": now };
    let count = (quantities.end - quantities.start) as i32;
    let history: Vec<Bson> = quantities.map(|quantity| trade(quantity).into()).collect();
    doc! {
        "q": {
            "_id": format!("{}_{:010}", tail.customer, 1_700_000_000 + tail.page),
            "customerId": tail.customer as i64,
            "count": tail.count as i32,
        },
        "u": {
            "$push": { "history": { "$each": history } },
            "$inc": { "count": count },
            "$min": { "first": now },
            "$max": { "last": now },
            "$setOnInsert": { "page": tail.page as i64 },
        },
        "upsert": true,
        "hint": { "_id": 1 },
    }
}
