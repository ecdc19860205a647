//! Memory of a server process of its own, with many customers known and under load.

use crate::harness::{Bench, Customers, Load, Report, Result, Section, Server, Timing};

const CUSTOMERS: u64 = 100_000;
const DATABASE: &str = "bench_memory";

/// The most that it may have, in MiB.
const EXPECTED: f64 = 96.0;

/// Starts `pagebucket serve`, sends it a trade for each customer, and looks at it under load.
pub async fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    eprintln!("bench: memory: a trade for each of {CUSTOMERS} customers");
    let server = Server::program(&bench.mongod, DATABASE, &[]).await?;
    let (idle, _) = server.resident()?;
    // More connections than elsewhere, to be done sooner; a quick run goes on with the customers that it has
    // reached.
    let at_most = bench.settings.quick.then_some(Timing::millis(0, 15_000));
    let touch = Load::append(256, 1, Customers::each(1..=CUSTOMERS), at_most);
    let customers = touch.run(server.address).await?.acknowledged;
    let all = Customers::Uniform(1..=customers.max(1));
    let load = Load::append(64, 1, all, Some(Timing::millis(0, 3_000)));
    load.run(server.address).await?;
    let (_, peak) = server.resident()?;
    server.stop().await?;
    bench.mongod.database(DATABASE).await?.drop().await?;
    let (most, measured) = (format!("≤ {EXPECTED} MiB"), format!("{peak:.0} MiB"));
    let work = format!("memory, {customers} customers");
    report.expect([&work, "ours, most resident", &most, &measured], peak <= EXPECTED, "");
    let about = format!(
        "A server process of its own, after a trade for each of {customers} customers, 64 connections \
         uniform over them: {peak:.0} MiB resident at most, {idle:.0} MiB before the first request."
    );
    report.sections.push(Section::new("memory", about, &[]));
    Ok(())
}
