//! The limits: what a bare driver does, without HTTP and without anything to decide.
//!
//! They know beforehand what ours must find out (which trades go together, where each customer's last bucket
//! is), so no server that sends these commands can be faster.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::{ClientSession, Database};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::harness::Result;
use crate::harness::block::{Block, Window, take_quantities};
use crate::harness::check::COLLECTION;

/// What is sent again and again, by so many senders at once.
#[derive(Clone, Copy)]
pub enum Commands {
    /// Ours' `update` commands.
    Statements(Statements),
    /// `insertMany` of flat documents.
    Inserts { senders: usize, batch: u64 },
    /// `ping`. Counts as one trade.
    Ping { senders: usize },
}

/// Ours' statements, one bucket each.
#[derive(Clone, Copy)]
pub struct Statements {
    pub senders: usize,
    /// Each sender has so many of its own.
    pub customers: usize,
    /// In one command. More than customers: the command is ordered, and a customer's buckets follow each other.
    pub statements: usize,
    /// In one statement. Divides ten, so that a bucket ends with a statement.
    pub trades: u64,
}

/// A bare driver. What its senders know of the database outlives a block.
pub struct Limit {
    database: Database,
    commands: Commands,
    senders: Vec<Arc<Mutex<Sender>>>,
}

struct Sender {
    session: ClientSession,
    /// Of the latest command; above all that the driver counts by itself.
    number: i64,
    tails: Vec<Tail>,
    next: usize,
}

#[derive(Clone, Copy)]
struct Tail {
    customer: u64,
    page: u64,
    count: u64,
}

impl Commands {
    fn senders(self) -> usize {
        match self {
            Self::Statements(Statements { senders, .. })
            | Self::Inserts { senders, .. }
            | Self::Ping { senders } => senders,
        }
    }

    fn trades(self) -> u64 {
        match self {
            Self::Statements(Statements { statements, trades, .. }) => statements as u64 * trades,
            Self::Inserts { batch, .. } => batch,
            Self::Ping { .. } => 1,
        }
    }
}

impl Limit {
    pub async fn new(database: Database, commands: Commands) -> Result<Self> {
        let customers = match commands {
            Commands::Statements(Statements { customers, .. }) => customers,
            Commands::Inserts { .. } | Commands::Ping { .. } => 0,
        };
        let mut senders = Vec::new();
        for sender in 0..commands.senders() {
            let session = database.client().start_session().causal_consistency(false).await?;
            let tails = (sender * customers..(sender + 1) * customers)
                .map(|customer| Tail { customer: customer as u64 + 1, page: 1, count: 0 })
                .collect();
            senders.push(Arc::new(Mutex::new(Sender { session, number: 1 << 40, tails, next: 0 })));
        }
        Ok(Self { database, commands, senders })
    }

    /// Sends until the window is over.
    pub async fn block(&self, window: Window) -> Result<Block> {
        let mut senders = JoinSet::new();
        for sender in &self.senders {
            let (sender, database, commands) = (Arc::clone(sender), self.database.clone(), self.commands);
            senders.spawn(async move { sender.lock().await.send(&database, commands, window).await });
        }
        let blocks: Result<Vec<Block>> = senders.join_all().await.into_iter().collect();
        Ok(Block::merge(blocks?, window))
    }
}

impl Sender {
    /// A limit that is refused anything is none: it ends the run.
    async fn send(&mut self, database: &Database, commands: Commands, window: Window) -> Result<Block> {
        let mut block = Block::default();
        while !window.is_over() {
            let (quantities, sent) = (take_quantities(commands.trades()), Instant::now());
            match commands {
                Commands::Statements(shape) => self.update(database, shape, quantities.clone()).await?,
                Commands::Inserts { .. } => {
                    let documents = quantities.clone().map(flat_document);
                    database.collection::<Document>(COLLECTION).insert_many(documents).await?;
                }
                Commands::Ping { .. } => {
                    database.run_command(doc! { "ping": 1 }).await?;
                }
            }
            block.answered(window, sent, commands.trades(), true);
            block.appended(&quantities, true);
        }
        Ok(block)
    }

    /// One command, with session and number as ours has them.
    async fn update(&mut self, database: &Database, shape: Statements, quantities: Range<u64>) -> Result<()> {
        let now = DateTime::now();
        let statements = quantities.step_by(shape.trades as usize).map(|first| {
            let tail = &mut self.tails[self.next];
            self.next = (self.next + 1) % shape.customers;
            let statement = upsert(*tail, first..first + shape.trades, now);
            tail.count += shape.trades;
            if tail.count == 10 {
                *tail = Tail { page: tail.page + 1, count: 0, ..*tail };
            }
            Bson::from(statement)
        });
        let statements: Vec<Bson> = statements.collect();
        self.number += 1;
        let command = doc! {
            "update": COLLECTION,
            "updates": statements,
            "ordered": shape.statements > shape.customers,
            "writeConcern": { "w": "majority", "j": true },
            "txnNumber": self.number,
        };
        let reply = database.run_command(command).session(&mut self.session).await?;
        if reply.get_i32("n")? as usize != shape.statements || reply.contains_key("writeConcernError") {
            return Err(format!("a bare command was refused: {reply}").into());
        }
        Ok(())
    }
}

/// As `store::trades::statement` has it.
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

/// For one of 10,000 customers in turn.
fn flat_document(quantity: u64) -> Document {
    doc! {
        "customerId": (quantity % 10_000) as i64 + 1,
        "type": "buy",
        "ticker": "MDB",
        "qty": quantity as i64,
        "date": DateTime::now(),
    }
}
