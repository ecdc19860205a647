//! Bytes a trade on disk.

use crate::harness::peers::{self, Way};
use crate::harness::{
    Bench, COLLECTION, Customers, DISK, Disk, Layout, Load, Report, Result, Section, Server, grouped,
};

/// The most that ours may take, as a share of what flat takes.
const EXPECTED: f64 = 0.5;

const CUSTOMERS: u64 = 10_000;

/// Has ours and flat store the same trades over HTTP: one by one, and in arrays of 100.
pub async fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let each = if bench.settings.quick { 10 } else { 100 };
    let count = CUSTOMERS * each;
    let about = format!(
        "Bytes a trade after {} trades over 10,000 customers, sent over HTTP by 64 connections, and a \
         checkpoint: the files of data and indexes. Of the data some is free to be used again: pages that \
         were rewritten. Documents: before compression. Flat with its indexes on `_id` and `{{customerId, \
         date}}`.",
        grouped(count)
    );
    let mut section = Section::new("disk", about, &[&["Trades came", "Documents"], &DISK[..]].concat());
    for (by, requests, trades) in [("one by one", each, 1), ("in arrays of 100", each / 100, 100)] {
        // A quick run has too few for arrays.
        if requests == 0 {
            continue;
        }
        let mut totals = Vec::new();
        for (label, layout) in [("ours", Layout::Ours), ("flat", Layout::Flat("date"))] {
            eprintln!("bench: disk: {label}, {count} trades {by}");
            let name = format!("bench_disk_{label}_{trades}");
            let database = layout.create(&bench.mongod, &name).await?;
            let server = match layout {
                Layout::Ours => Server::ours(bench.mongod.store(&name).await?, |_| ()).await?,
                _ => Server::peer(peers::routes(&database, Way::Flat), true).await?,
            };
            // The second for any customer after the first for all.
            for _ in 0..requests {
                let load = Load::append(64, trades, Customers::each(1..=CUSTOMERS), None);
                let failed = load.run(server.address).await?.failed;
                if failed > 0 {
                    return Err(format!("{label}: {failed} trades were refused").into());
                }
            }
            server.stop().await?;
            let disk = Disk::of(&database, COLLECTION).await?;
            database.drop().await?;
            totals.push(disk.total());
            section.row(label, [by.to_owned()].into_iter().chain(disk.cells(count, 1)));
        }
        let ratio = totals[0] / totals[1];
        let (work, most, measured) =
            (format!("disk, trades {by}"), format!("≤ {EXPECTED}"), format!("{ratio:.2}"));
        report.expect([&work, "bytes a trade, ours / flat", &most, &measured], ratio <= EXPECTED, "");
    }
    report.sections.push(section);
    Ok(())
}
