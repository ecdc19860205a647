//! `serve`: runs the server until a signal.

mod gate_from_flags;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use pagebucket_embedded::Role;
use pagebucket_engine::Deadline;
use pagebucket_engine::internal::COMMAND;
use pagebucket_model::domain::{Clock, Invalid};
use pagebucket_service::{ServeError, Service, ServiceConfig};
use tokio::net::TcpSocket;
use tokio_util::sync::CancellationToken;

use super::database::{self, Opened, Unready};
use super::exit::{Failure, Signals};
use super::terminal::{print, write};
use crate::config::{AuthArgs, CapacityArgs, DatabaseArgs, ReadArgs, RetentionArgs, ServerArgs, heading};
use crate::telemetry::traces::{self, TraceArgs};

/// Flags of `serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    capacity: CapacityArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    auth: AuthArgs,
    #[command(flatten)]
    reads: ReadArgs,
    #[command(flatten)]
    retention: RetentionArgs,
    #[command(flatten)]
    pub(crate) traces: TraceArgs,
    /// Do not apply migrations.
    ///
    /// The server refuses to start while any is pending.
    #[arg(long, help_heading = heading::DATABASE, env = "PAGEBUCKET_NO_MIGRATE", value_parser = clap::builder::FalseyValueParser::new())]
    no_migrate: bool,

    /// File with settings in TOML, which flags and variables override.
    ///
    /// Its keys are the names of the flags of this command without dashes, such as `listen = "8080"`.
    #[arg(long, help_heading = heading::FILE, env = "PAGEBUCKET_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the settings in force as a file of --config, and end.
    ///
    /// Connection strings are left out, because they may have passwords.
    #[arg(long, help_heading = heading::FILE)]
    print_config: bool,

    /// What --print-config prints.
    #[arg(skip)]
    pub(crate) in_force: String,
}

pub(crate) async fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    gate_from_flags::check(&args.auth, &args.server)?;
    if args.print_config {
        return write(&args.in_force).map(|()| ExitCode::SUCCESS);
    }
    // Signals come first, so that an early one also stops the private mongod in order.
    let mut signals = Signals::new()?;
    let definitions = database::definitions(&args.database.histories)?;
    let retained = args.server.retain.retained(&definitions);
    let config = ServiceConfig {
        server: (&args.server).into(),
        api: (&args.server.api).into(),
        retained: retained.map_err(|Invalid(words)| Failure::Usage(words))?,
        ..ServiceConfig::default()
    };
    // Before a mongod is started or a migration is applied.
    pagebucket_server::check(&config.server).await.map_err(|error| ServeError::Bind(error.into()))?;
    let socket = pagebucket_server::reserve(config.server.listen).map_err(ServeError::from)?;
    let opened = tokio::select! {
        opened = database::open(&args.database, &args.capacity, Role::Server, Unready::Refuse) => opened?,
        () = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    opened.with(async |opened| serve(opened, &args, config, socket, &mut signals).await).await
}

async fn serve(
    opened: &Opened,
    args: &ServeArgs,
    config: ServiceConfig,
    socket: TcpSocket,
    signals: &mut Signals,
) -> Result<ExitCode, Failure> {
    let prepare = async {
        opened.judge_server().await;
        opened.prepare(args.no_migrate).await?;
        if !args.no_migrate {
            opened.store.keep_keys_for(args.retention.key_retention).await?;
            opened.store.keep_views_for(args.retention.view_retention).await?;
        }
        // Now, because a signal ends this, and not the start of the server.
        let epoch = opened.store.epoch(Deadline::within(COMMAND)).await;
        epoch.map_err(|error| Failure::Database(error.to_string()))?;
        Ok::<(), Failure>(())
    };
    tokio::select! {
        prepared = prepare => prepared?,
        // It may wait long for another instance. An interrupted migration runs again at the next start, when
        // the lease of its lock has ended.
        () = signals.next() => return Ok(ExitCode::SUCCESS),
    }
    let store = opened.store.clone().preferring(args.reads.read_preference);
    let gate = gate_from_flags::open(&args.auth, &store).await?;
    let traces = traces::of_requests(&args.traces);
    let service = Service::on(socket, config, store, Clock::system(), gate, traces).await?;
    let (scheme, address) = (service.scheme(), service.address());
    print(format_args!("pagebucket listens on {scheme}://{address}"));
    tracing::info!(%address, "serving; Swagger UI is at /docs/");

    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(service.serve(stop.cancelled()));
    let drained = tokio::select! {
        drained = &mut serving => drained,
        () = signals.next() => {
            tracing::info!("stopping: after the drain delay no more connections are accepted; running requests may end");
            stop.cancel();
            tokio::select! {
                drained = &mut serving => drained,
                () = signals.next() => {
                    tracing::warn!("stopping at once after a second signal");
                    false
                }
            }
        }
    };
    if !drained {
        tracing::warn!("exiting with requests still running");
    }
    Ok(ExitCode::SUCCESS)
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Database(error) => Self::Database(error.to_string()),
            error => Self::Usage(error.to_string()),
        }
    }
}
