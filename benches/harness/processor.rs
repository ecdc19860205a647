//! Processor time, from `/proc`.

use std::time::Duration;

/// Ticks of the processor times in `/proc` are hundredths of a second on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// Of this process, all of its threads.
pub fn own_time() -> Duration {
    ticks("/proc/self/stat", 2)
}

/// Of the thread that asks.
pub fn thread_time() -> Duration {
    ticks("/proc/thread-self/stat", 2)
}

/// Of a process, and of its children, those that have ended included.
pub fn family_time(id: Option<u32>) -> Duration {
    let Some(id) = id else { return Duration::ZERO };
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let of_child = |child: &str| ticks(&format!("/proc/{child}/stat"), 2);
    ticks(&format!("/proc/{id}/stat"), 4) + children.split_whitespace().map(of_child).sum::<Duration>()
}

/// The sum of so many fields from the 14th, `utime`. The second may contain spaces, and ends with a bracket.
fn ticks(stat: &str, fields: usize) -> Duration {
    let text = std::fs::read_to_string(stat).unwrap_or_default();
    let after = text.rsplit_once(") ").map_or("", |(_, after)| after);
    let times = after.split(' ').skip(11).take(fields).filter_map(|field| field.parse::<u32>().ok());
    TICK * times.sum::<u32>()
}
