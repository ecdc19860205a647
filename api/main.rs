//! The binary. See `pagebucket --help`.

use std::process::ExitCode;

use clap::Parser;
use pagebucket::cli::Cli;

// The system's allocator keeps what many threads free; under load this one needs less and is faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    Cli::parse().run().await
}
