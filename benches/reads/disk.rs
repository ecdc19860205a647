//! Bytes a trade on disk.

use crate::harness::peers::{self, Way};
use crate::harness::{Bench, COLLECTION, Customers, DISK, Disk, Layout, Load, POOL};
use crate::harness::{Report, Result, Section, Server, Storage, grouped};

/// The most that ours may take, as a share of what flat takes.
const EXPECTED: f64 = 0.5;

const CUSTOMERS: u64 = 10_000;

/// With their layouts; without one it is PostgreSQL.
const CONTENDERS: [(&str, Option<Layout>); 3] =
    [("ours", Some(Layout::Ours)), ("flat", Some(Layout::Flat("date"))), ("PostgreSQL", None)];

/// Has all store the same trades over HTTP: one by one, and in arrays of 100.
pub async fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let each = if bench.settings.quick { 10 } else { 100 };
    let count = CUSTOMERS * each;
    let about = format!(
        "Bytes a trade after {} trades over 10,000 customers, sent over HTTP by 64 connections, and a \
         checkpoint: the files of data and indexes. Of the data some is free to be used again: pages that \
         were rewritten. Documents: before compression. Flat with its indexes on `_id` and `{{customerId, \
         date}}`. PostgreSQL: the two tables with their primary keys; documents are its rows.",
        grouped(count)
    );
    let mut section = Section::new("disk", about, &[&["Trades came", "Documents"], &DISK[..]].concat());
    for (by, requests, trades) in [("one by one", each, 1), ("in arrays of 100", each / 100, 100)] {
        // A quick run has too few for arrays.
        if requests == 0 {
            continue;
        }
        let mut totals = Vec::new();
        for (label, layout) in CONTENDERS {
            if layout.is_none() && bench.postgres.is_none() {
                continue;
            }
            eprintln!("bench: disk: {label}, {count} trades {by}");
            let name = format!("bench_disk_{}_{trades}", label.to_lowercase());
            let storage = Storage::create(bench, layout, &name, POOL as usize).await?;
            let server = match &storage {
                Storage::Mongo(Layout::Ours, _) => {
                    Server::ours(bench.mongod.store(&name).await?, |_| ()).await?
                }
                Storage::Mongo(_, database) => Server::peer(peers::routes(database, Way::Flat), true).await?,
                Storage::Postgres(pool) => Server::peer(peers::postgres(pool.clone()), true).await?,
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
            let (total, cells) = match &storage {
                Storage::Mongo(_, database) => {
                    let disk = Disk::of(database, COLLECTION).await?;
                    (disk.total(), disk.cells(count, 1))
                }
                Storage::Postgres(pool) => {
                    let [rows, tables, indexes] = pool.disk().await?.map(|bytes| bytes as f64);
                    let cell = |bytes: f64| format!("{:.1}", bytes / count as f64);
                    let total = tables + indexes;
                    (total, [cell(rows), cell(tables), String::new(), cell(indexes), cell(total)])
                }
            };
            storage.drop_database().await?;
            totals.push((label, total));
            section.row(label, [by.to_owned()].into_iter().chain(cells));
        }
        for (label, total) in &totals[1..] {
            let (ratio, most) = (totals[0].1 / total, if *label == "flat" { EXPECTED } else { 1.0 });
            let (work, holds) = (format!("disk, trades {by}"), ratio <= most);
            let compared = format!("bytes a trade, ours / {label}");
            report.expect([&work, &compared, &format!("≤ {most}"), &format!("{ratio:.2}")], holds, "");
        }
    }
    report.sections.push(section);
    Ok(())
}
