use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::exit::Failure;

/// SIGTERM and Ctrl-C, from when this is made: they end nothing by themselves any more.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::Usage(format!("cannot listen for signals: {error}")))
        };
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Sends a message for each signal from now on.
    pub(super) fn channel(mut self) -> mpsc::Receiver<()> {
        let (send, receive) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = self.next() => {}
                    () = send.closed() => return,
                }
                if send.send(()).await.is_err() {
                    return;
                }
            }
        });
        receive
    }

    /// Completes with the next of either.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
