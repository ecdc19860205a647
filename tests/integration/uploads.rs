//! Uploads: an item a line, any number of lines, told exactly.

mod bounds;
mod faults;

use serde_json::json;

use crate::commands::program::Place;
use crate::harness::uploads::wire::Upload;
use crate::harness::uploads::*;
use crate::harness::{History, test_over};

/// What the kernel says of a process's memory, in MiB, at most.
fn most_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of it");
    line.trim_end_matches(" kB").trim().parse::<u64>().expect("kB") / 1024
}

test_over!(memory_is_constant, TRADES);
async fn memory_is_constant(history: &'static History) {
    let place = Place::of(history).await;
    let serving = place.serve(&["--log", "error"]).await;
    serving.client.append(8, &history.item(1)).await.expect(201);
    let before = most_memory(serving.pid());
    // Some 180 MB each time, of items and of lines that are none.
    let (good, noise) =
        (history.lines(1..=1_000), format!("{}\n{}\n", "\n".repeat(1_000), "x".repeat(300_000)));
    for answer in ANSWERS {
        let upload = Upload::begin(serving.address, &history.at(7, answer), &[]).await;
        let (mut read, mut write) = upload.split();
        let writing = async {
            for _ in 0..50 {
                write.send(&good).await;
                for _ in 0..12 {
                    write.send(&noise).await;
                }
            }
            write.end().await;
        };
        let reading = async {
            if answer == BY_LINE {
                let mut stored = 0_u64;
                while let Some(line) = read.line().await {
                    stored += u64::from(line.get("seq").is_some());
                }
                assert_eq!(stored, 50_000);
            } else {
                let summary = read.line().await.expect("a summary");
                assert_eq!((&summary["stored"], &summary["refused"]), (&json!(50_000), &json!(600)));
            }
        };
        tokio::join!(writing, reading);
        let after = most_memory(serving.pid());
        println!("{answer}: {before} MiB before, at most {after} MiB");
        // What an allocator keeps for each thread is most of it, and differs from run to run.
        assert!(after <= before + 96, "{answer}: {before} MiB before, {after} MiB after");
    }
    serving.stop().await;
}
