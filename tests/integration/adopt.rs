//! `pagebucket adopt`, through the real binary: collections of both shapes become histories.

mod conversion;
mod followed;
mod identified;
mod killed;
mod refused;
mod shapes;
mod speed;

use mongodb::Collection;
use mongodb::bson::{Document, doc};
use tokio::process::Command;

use crate::commands::program::{Ended, Place, run};
use crate::harness::{Mongod, Setup, Stored, TRADES, stored};

/// The collection that the tests adopt, in the database of the histories.
const OLD: &str = "old";

/// A database with an old collection, which is to be adopted into its trades.
struct Moving {
    place: Place,
    database: mongodb::Database,
}

impl Moving {
    async fn new() -> Self {
        Self::at(Place::new().await).await
    }

    /// On a mongod of the test's own.
    async fn on(mongod: &Mongod) -> Self {
        let connection = Setup::on(mongod).store.connection;
        Self::at(Place { history: TRADES, uri: connection.uri, name: connection.database }).await
    }

    async fn at(place: Place) -> Self {
        let database = place.database().await;
        Self { place, database }
    }

    fn old(&self) -> Collection<Document> {
        self.database.collection(OLD)
    }

    /// `adopt` of the old collection.
    fn adopt(&self, arguments: &[&str]) -> Command {
        // By its name a test lets commands to the source fail.
        let uri = format!("{}&appName=old", self.place.uri);
        let from = ["--from", &uri, "--from-database", &self.place.name, "--collection", OLD];
        let into = ["--into", self.place.history.name];
        self.place.pagebucket("adopt", &[&from[..], &into, arguments].concat())
    }

    /// Runs it to its end.
    async fn adopted(&self, arguments: &[&str], status: i32) -> Ended {
        let ended = run(&mut self.adopt(arguments)).await;
        assert_eq!(ended.status, Some(status), "{arguments:?}: {ended:?}");
        ended
    }

    /// Compares, and finds no difference; and all invariants hold.
    async fn is_clean(&self, arguments: &[&str]) -> Ended {
        let ended = self.adopted(&[&["--check"], arguments].concat(), 0).await;
        assert!(ended.out.contains("\n0 differences\n"), "{ended:?}");
        let verified = run(&mut self.place.pagebucket("verify", &["--pages-per-second", "1000000"])).await;
        assert_eq!((verified.status, verified.out.as_str()), (Some(0), ""), "{verified:?}");
        ended
    }

    async fn stored(&self, customer: u64) -> Stored {
        stored(&self.database, TRADES, customer).await
    }
}

/// A trade as the manual has it, before it has buckets.
fn trade(customer: i64, quantity: i64, millis: i64) -> Document {
    let date = mongodb::bson::DateTime::from_millis(millis);
    doc! { "ticker": "MDB", "customerId": customer, "type": "buy", "quantity": quantity, "date": date }
}
