//! Stages: contenders that are started together, and the workloads they go through.

use crate::contender::{Contender, Kind};
use crate::harness::Result;
use crate::harness::comparison::Comparison;
use crate::harness::customers::Customers;
use crate::harness::load::{Append, Load};
use crate::harness::mongod::Mongod;
use crate::harness::settings::{Settings, Timing};
use crate::harness::turns::{Outcome, Summary, in_turns};

/// Contenders, and what they are put through, in this order.
pub struct Stage {
    pub name: &'static str,
    pub contenders: Vec<(&'static str, Kind)>,
    /// So many customers get one trade each beforehand: a history that exists, in a server that knows it.
    pub seeded: u64,
    pub workloads: Vec<Workload>,
}

/// A kind of load on some of the stage's contenders.
pub struct Workload {
    pub name: &'static str,
    /// What is done, in a sentence or two.
    pub about: &'static str,
    pub connections: usize,
    pub trades: u64,
    /// For each contender and round.
    pub customers: Box<dyn Fn(Kind, u64) -> Customers + Send>,
    pub timing: Timing,
    /// Labels.
    pub contenders: Vec<&'static str>,
    pub comparisons: Vec<Comparison>,
}

/// Starts the contenders, runs the workloads one after the other, and stops the contenders.
pub async fn run(stage: Stage, mongod: &Mongod, settings: &Settings) -> Result<Vec<Outcome>> {
    let mut contenders = Vec::new();
    for (number, (label, kind)) in stage.contenders.iter().enumerate() {
        eprintln!("bench: {}: starting {label}", stage.name);
        let database = format!("bench_{}_{number}", stage.name);
        let contender = Contender::start(mongod, &database, label, *kind).await?;
        if kind.keyed() {
            contender.try_a_repeat().await?;
        }
        if contender.is_server() && stage.seeded > 0 {
            let customers = Customers::each(1..=stage.seeded);
            let task = Append { trades: 1, customers, keyed: kind.keyed() };
            let load = Load { connections: 64, task, timing: None, seed: 0 };
            let (block, _) = contender.block(load).await?;
            if block.failed > 0 {
                return Err(format!("{label} refused {} of its first trades", block.failed).into());
            }
        }
        contenders.push(contender);
    }
    let mut outcomes = Vec::new();
    for workload in stage.workloads {
        outcomes.push(run_workload(workload, &contenders, settings).await?);
    }
    for contender in contenders {
        contender.stop().await?;
    }
    Ok(outcomes)
}

async fn run_workload(workload: Workload, all: &[Contender], settings: &Settings) -> Result<Outcome> {
    let Workload { name, about, connections, trades, customers, timing, contenders, comparisons } = workload;
    let find = |label: &&str| all.iter().find(|contender| contender.label == *label);
    let contenders: Vec<&Contender> = contenders.iter().filter_map(find).collect();
    let labels = contenders.iter().map(|contender| contender.label.to_owned());
    let block = async |place: usize, round: u64| {
        let contender = contenders[place];
        let customers = customers(contender.kind, round);
        let load = Load {
            connections,
            task: Append { trades, customers, keyed: contender.kind.keyed() },
            timing: Some(timing),
            seed: settings.seed.wrapping_add(round * 1000),
        };
        let (block, verdict) = contender.block(load).await?;
        Ok(Summary::new(&block, verdict))
    };
    let series = in_turns(name, labels, settings, block).await?;
    let unit = if trades > 1 { "trades" } else { "appends" };
    Ok(Outcome { name, about, unit, comparisons, series })
}
