//! The binary. See `pagebucket --help`.

use std::process::ExitCode;

use pagebucket::commands::Cli;
use tokio::runtime::Runtime;

// The system's allocator keeps what many threads free; under load this one needs less and is faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::io::Result<ExitCode> {
    let cli = match Cli::of_process() {
        Ok(cli) => cli,
        Err(status) => return Ok(status),
    };
    let runtime = Runtime::new()?;
    let status = runtime.block_on(cli.run());
    // Not torn down: what is to be ended in order has ended, and the driver's monitors, which run for
    // as long as the process, may panic when their timers are taken from them.
    std::mem::forget(runtime);
    Ok(status)
}
