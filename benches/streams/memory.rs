//! Memory of a server process of its own while a long history leaves it, and while as many trades come in.

use super::files::Trades;
use super::transfer;
use crate::harness::{Bench, Client, Layout, Report, Result, Section, Server, grouped, write_history};

const DATABASE: &str = "bench_memory";

/// The customer with the long history.
const LONG: u64 = 20_000;

/// The most over idle while trades go out, in MiB.
const EXPECTED: f64 = 32.0;

/// Has a new server process do each work.
pub async fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let trades = if bench.settings.quick { 100_000 } else { 1_000_000 };
    let shown = grouped(trades);
    let about = format!("A server process of its own for each, {shown} trades in one request: MiB resident.");
    let mut section = Section::new("memory", about, &["Idle", "At most", "Over idle"]);
    eprintln!("bench: memory: writing a history");
    let database = Layout::Ours.create(&bench.mongod, DATABASE).await?;
    write_history(&database, Layout::Ours, (LONG, LONG, trades / 10)).await?;
    // In which format they go out, or of how many customers they come in.
    for (what, format, customers) in [
        ("export, NDJSON", Some("ndjson"), 1),
        ("export, CSV", Some("csv"), 1),
        ("upload, one customer", None, 1),
        ("upload, 10,000 customers", None, 10_000),
    ] {
        eprintln!("bench: memory: {what}");
        let server = Server::program(&bench.mongod, DATABASE, &[]).await?;
        Client::new(server.address).get("/v1/customers/1", "").await?;
        let (idle, _) = server.resident()?;
        let done = match format {
            Some(format) => {
                let (rows, _) = transfer::download(server.address, LONG, format).await?;
                rows.count - u64::from(format == "csv")
            }
            None => {
                let file = Trades::write(bench, "memory.ndjson", customers, trades)?;
                transfer::upload(server.address, &file).await?.0
            }
        };
        if done != trades {
            return Err(format!("{what}: {done} trades of {trades}").into());
        }
        let (_, peak) = server.resident()?;
        server.stop().await?;
        let over = peak - idle;
        section.row(what, [idle, peak, over].map(|mib| format!("{mib:.0}")));
        if format.is_some() {
            let (work, most) = (format!("memory, {what}, {shown} trades"), format!("≤ {EXPECTED} MiB"));
            let measured = format!("{over:.0} MiB");
            report.expect([&work, "over idle, at most", &most, &measured], over <= EXPECTED, "");
        }
    }
    database.drop().await?;
    report.sections.push(section);
    Ok(())
}
