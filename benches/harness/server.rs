//! What is measured: ours in this process, a peer in the same shell, a process of its own, or a bare driver.

use std::net::SocketAddr;
use std::process::{Output, Stdio};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mongodb::Database;
use pagebucket_engine::Store;
use pagebucket_http::{Gate, Limits};
use pagebucket_model::domain::Clock;
use pagebucket_service::{Service, ServiceConfig};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Mongod, Result, field};

/// A contender that is running: a server or a bare driver, and the database that it stores into.
pub struct Contender<Driver, Base = Database> {
    pub label: String,
    pub database: Base,
    pub running: Running<Driver>,
}

pub enum Running<Driver> {
    Server(Server),
    Driver(Driver),
}

impl<Driver, Base> Contender<Driver, Base> {
    /// Stops it; its database, which others may share.
    pub async fn stop(self) -> Result<Base> {
        if let Running::Server(server) = self.running {
            server.stop().await?;
        }
        Ok(self.database)
    }
}

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    serving: Serving,
}

enum Serving {
    Ours(oneshot::Sender<()>, JoinHandle<bool>),
    Peer(JoinHandle<()>),
    /// Killed when it is dropped.
    Process(Box<Child>),
}

/// The largest body that a peer reads.
pub const BODY: usize = 1024 * 1024;

impl Server {
    /// The real server, with what users get by default except for a change.
    pub async fn ours(store: Store, change: impl FnOnce(&mut ServiceConfig)) -> Result<Self> {
        Self::behind(Gate::unguarded(), store, change).await
    }

    /// The real server behind a gate.
    pub async fn behind(gate: Gate, store: Store, change: impl FnOnce(&mut ServiceConfig)) -> Result<Self> {
        let mut config = ServiceConfig::default();
        config.server.listen.set_port(0);
        change(&mut config);
        let server = Service::bind(config, store, Clock::system(), gate).await?;
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async {
            stopped.await.ok();
        }));
        Ok(Self { address, serving: Serving::Ours(stop, serving) })
    }

    /// A peer's routes in a shell as near to ours as can be, so that the difference is how trades are kept:
    /// the hyper settings of `server`, and the layers of `http` if it is to have them. It answers in the
    /// request's own task where ours hands trades on, which favours the peers.
    pub async fn peer(routes: Router, layers: bool) -> Result<Self> {
        let body_timeout = Duration::from_secs(10);
        let limits =
            Limits { requests: 1024, live: 1, live_age: body_timeout, body: BODY, tls: false, body_timeout };
        let routes = if layers { pagebucket_http::as_ours(routes, limits, Vec::new()) } else { routes };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).ok();
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(Duration::from_secs(30))
                    .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes.clone()));
                tokio::spawn(connection);
            }
        });
        Ok(Self { address, serving: Serving::Peer(serving) })
    }

    /// `pagebucket serve` with the defaults except for `flags`, without its log: that has a line for each
    /// request.
    pub async fn program(mongod: &Mongod, database: &str, flags: &[&str]) -> Result<Self> {
        let mut command = program(mongod, database);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags);
        Self::process(command.stderr(Stdio::null())).await
    }

    /// [`Self::program`] with traces of this share of the requests. The collector takes all, and ends with
    /// the benchmark.
    pub async fn traced(mongod: &Mongod, database: &str, share: Option<&str>) -> Result<Self> {
        let Some(share) = share else { return Self::program(mongod, database, &[]).await };
        let takes_all = Router::new().route("/v1/traces", post(async |_: Bytes| ()));
        let collector = format!("http://{}", Self::peer(takes_all, false).await?.address);
        let flags = ["--otlp-endpoint", &collector, "--trace-share", share];
        Self::program(mongod, database, &flags).await
    }

    /// A process that prints its URL at the end of its first line.
    pub async fn process(command: &mut Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let line = BufReader::new(output).lines().next_line().await?.ok_or("the server did not start")?;
        let (_, address) = line.rsplit_once("http://").ok_or("no address")?;
        Ok(Self { address: address.parse()?, serving: Serving::Process(Box::new(child)) })
    }

    /// Of its process, if it has one of its own.
    pub fn id(&self) -> Option<u32> {
        if let Serving::Process(child) = &self.serving { child.id() } else { None }
    }

    /// Resident memory of its process, now and the most since its start, in MiB.
    pub fn resident(&self) -> Result<(f64, f64)> {
        let status = format!("/proc/{}/status", self.id().ok_or("no process of its own")?);
        let mib = |name| -> Result<f64> {
            Ok(field(&status, name).trim_end_matches(" kB").parse::<f64>()? / 1024.0)
        };
        Ok((mib("VmRSS")?, mib("VmHWM")?))
    }

    /// Stops it, and waits until it has stopped.
    pub async fn stop(self) -> Result<()> {
        match self.serving {
            Serving::Ours(stop, serving) => {
                drop(stop);
                serving.await?;
            }
            Serving::Peer(serving) => serving.abort(),
            Serving::Process(mut child) => child.kill().await?,
        }
        Ok(())
    }
}

/// Any command of the program on a database, without the variables of this environment.
fn program(mongod: &Mongod, database: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagebucket"));
    command.env_clear().env("MONGODB_URI", mongod.uri()).env("PAGEBUCKET_DATABASE", database);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command that ends by itself; its output.
///
/// # Errors
/// It failed: then its own message.
pub async fn run_program(mongod: &Mongod, database: &str, arguments: &[&str]) -> Result<String> {
    let Output { status, stdout, stderr } = program(mongod, database).args(arguments).output().await?;
    let said = String::from_utf8_lossy(&stdout).into_owned();
    if !status.success() {
        let errors = String::from_utf8_lossy(&stderr);
        return Err(format!("pagebucket {}: {status}: {said}{errors}", arguments.join(" ")).into());
    }
    Ok(said)
}
