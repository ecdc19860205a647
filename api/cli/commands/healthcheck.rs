//! `healthcheck`: asks a running server whether it is ready.

mod tls;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::exit::Failure;
use super::terminal::print;
use crate::config::listen_address;

/// Time within which the server must answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Flags of `healthcheck`.
#[derive(Args, Debug)]
pub(crate) struct HealthcheckArgs {
    /// Address on which the server listens, or a port of 127.0.0.1 alone.
    #[arg(long, env = "PAGEBUCKET_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    #[arg(value_parser = listen_address)]
    listen: SocketAddr,

    /// Server certificate: connect over TLS.
    ///
    /// The certificate that the server has is accepted, also while its file is being renewed.
    #[arg(long, env = "PAGEBUCKET_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
}

pub(crate) async fn run(args: HealthcheckArgs) -> Result<ExitCode, Failure> {
    let mut address = args.listen;
    // A server that listens on every address is asked on loopback.
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let tls = args.tls_cert.is_some();
    let status = tokio::time::timeout(ANSWER, ask(address, tls)).await;
    let status = status.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
    let scheme = if tls { "https" } else { "http" };
    match status {
        Ok(200) => {
            print(format_args!("ready"));
            Ok(ExitCode::SUCCESS)
        }
        Ok(status) => {
            Err(Failure::Partly(format!("{scheme}://{address}/readyz answers {status}: not ready")))
        }
        Err(error) => Err(Failure::Partly(format!("{scheme}://{address}/readyz does not answer: {error}"))),
    }
}

/// The status of `/readyz`: one request and the first line of its answer. An HTTP client would first load the
/// machine's certificates, every ten seconds in a container.
async fn ask(address: SocketAddr, tls: bool) -> std::io::Result<u16> {
    let stream = TcpStream::connect(address).await?;
    if tls { ask_over(tls::connect(stream, address).await?).await } else { ask_over(stream).await }
}

async fn ask_over(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<u16> {
    // A host that every server answers for, whatever its address and its `--allowed-hosts`.
    let request = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(stream.take(64 * 1024)).read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidData, "no HTTP answer"))
}
