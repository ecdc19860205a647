//! Stages: histories that are written, contenders that read them, and the workloads they go through.

use std::collections::BTreeSet;

use crate::contender::{Contender, Kind};
use crate::harness::Result;
use crate::harness::comparison::Comparison;
use crate::harness::load::Load;
use crate::harness::mongod::Mongod;
use crate::harness::settings::{Settings, Timing};
use crate::harness::turns::{Outcome, Summary, in_turns};
use crate::histories::Histories;
use crate::reading::Reading;

/// Contenders, and what they are put through, in this order.
pub struct Stage {
    pub name: &'static str,
    pub histories: Histories,
    /// Those that the machine has no means to start are left out.
    pub contenders: Vec<(&'static str, Kind)>,
    pub workloads: Vec<Workload>,
}

/// A kind of load on some of the stage's contenders.
pub struct Workload {
    /// As `ONLY` names it.
    pub key: &'static str,
    pub name: &'static str,
    /// What is done, in a sentence or two.
    pub about: &'static str,
    /// What a rate counts.
    pub unit: &'static str,
    pub connections: usize,
    pub timing: Timing,
    pub entries: Vec<Entry>,
    pub comparisons: Vec<Comparison>,
}

/// One series: a contender that is asked in one way.
pub struct Entry {
    pub label: String,
    pub contender: &'static str,
    pub reading: Reading,
}

/// Starts the contenders, runs the workloads that are asked for, and stops the contenders.
pub async fn run(mut stage: Stage, mongod: &Mongod, settings: &Settings) -> Result<Vec<Outcome>> {
    stage.workloads.retain(|workload| settings.includes(workload.key));
    let asked: BTreeSet<&str> =
        stage.workloads.iter().flat_map(|workload| &workload.entries).map(|entry| entry.contender).collect();
    // The first is kept whatever is asked for: others have bytes from it.
    let first = stage.contenders.first().map(|(label, _)| *label);
    stage
        .contenders
        .retain(|(label, kind)| (asked.contains(label) || Some(*label) == first) && kind.can_start());
    if stage.workloads.is_empty() {
        return Ok(Vec::new());
    }
    let mut data = Vec::new();
    for (_, kind) in &stage.contenders {
        if !data.contains(&kind.data()) {
            data.push(kind.data());
        }
    }
    let mut databases = Vec::new();
    for data in data {
        databases.push(data.write(mongod, stage.name, &stage.histories).await?);
    }
    let mut contenders: Vec<Contender> = Vec::new();
    for (label, kind) in stage.contenders {
        let first = contenders.first().map(Contender::address);
        contenders.push(Contender::start(mongod, stage.name, label, kind, first).await?);
    }
    let mut outcomes = Vec::new();
    for workload in stage.workloads {
        outcomes.push(run_workload(workload, &contenders, settings).await?);
    }
    for contender in contenders {
        contender.stop().await?;
    }
    for database in databases {
        database.drop().await?;
    }
    Ok(outcomes)
}

async fn run_workload(workload: Workload, all: &[Contender], settings: &Settings) -> Result<Outcome> {
    let Workload { name, about, unit, connections, timing, entries, comparisons, .. } = workload;
    let running = |entry: Entry| {
        let contender = all.iter().find(|contender| contender.label == entry.contender)?;
        Some((entry, contender))
    };
    let entries: Vec<(Entry, &Contender)> = entries.into_iter().filter_map(running).collect();
    let labels = entries.iter().map(|(entry, _)| entry.label.clone());
    let block = async |place: usize, round: u64| {
        let (entry, contender) = &entries[place];
        let load = Load {
            connections,
            task: entry.reading.clone().into(),
            timing: Some(timing),
            seed: settings.seed.wrapping_add(round * 1000),
        };
        let (block, verdict) = contender.block(load).await?;
        Ok(Summary::new(&block, verdict))
    };
    let series = in_turns(name, labels, settings, block).await?;
    Ok(Outcome { name, about, unit, comparisons, series })
}
