//! `RESULTS.md`: what was expected and what was measured, then every workload.

use std::fmt::Write;

use crate::harness::machine::Machine;
use crate::harness::report::{write_circumstances, write_expectations, write_workload, yes_or_no};
use crate::harness::settings::Settings;
use crate::harness::turns::Outcome;
use crate::memory::{self, Memory};

/// The whole text.
pub fn write(
    settings: &Settings,
    machine: &Machine,
    mongod: &str,
    outcomes: &[Outcome],
    memory: Option<&Memory>,
) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_all(&mut text, settings, machine, mongod, outcomes, memory);
    text
}

fn write_all(
    text: &mut String,
    settings: &Settings,
    machine: &Machine,
    mongod: &str,
    outcomes: &[Outcome],
    memory: Option<&Memory>,
) -> std::fmt::Result {
    writeln!(text, "# Appends: ours beside others\n")?;
    writeln!(text, "Written by `make bench`; `benches/appends/main.rs` says how it measures.")?;
    if settings.quick {
        writeln!(text, "**A quick run, of few and short blocks: an indication, no more.**")?;
    }
    write_expectations(text, outcomes)?;
    if let Some(memory) = memory {
        let holds = yes_or_no(memory.peak <= memory::EXPECTED);
        let (customers, peak, most) = (memory.customers, memory.peak, memory::EXPECTED);
        writeln!(
            text,
            "| memory, {customers} customers | ours, most resident | ≤ {most} MiB | {peak:.0} MiB | {holds} | |"
        )?;
    }
    write_circumstances(text, settings, machine, &format!("mongod {mongod}"))?;
    for outcome in outcomes {
        write_workload(text, outcome)?;
    }
    if let Some(Memory { customers, idle, resident, peak }) = memory {
        writeln!(text, "\n## memory\n")?;
        writeln!(
            text,
            "A server process of its own, after a trade for each of {customers} customers, 64 connections uniform over \
             them: {resident:.0} MiB resident (median under load), {peak:.0} MiB at most, {idle:.0} MiB before the first \
             request."
        )?;
    }
    Ok(())
}
