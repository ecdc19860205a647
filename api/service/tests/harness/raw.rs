//! A connection on which a request is sent piece by piece.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::PATIENCE;

/// A connection on which a request can be sent piece by piece.
pub struct Raw {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Raw {
    pub async fn connect(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.expect("a connection"), read: Vec::new() }
    }

    pub async fn send(&mut self, piece: &str) {
        self.stream.write_all(piece.as_bytes()).await.expect("to send");
    }

    /// A POST that is under way: the server has read its head and waits for a body of this length.
    pub async fn begin_append(address: SocketAddr, customer: u64, length: usize) -> Self {
        let mut connection = Self::connect(address).await;
        let head = format!(
            "POST /v1/customers/{customer}/trades HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\
             Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n"
        );
        connection.send(&head).await;
        connection.read_until("100 Continue\r\n\r\n").await;
        connection
    }

    pub async fn read_until(&mut self, end: &str) {
        timeout(PATIENCE, async {
            while !self.read.ends_with(end.as_bytes()) {
                self.read.push(self.stream.read_u8().await.expect("more of an answer"));
            }
        })
        .await
        .unwrap_or_else(|_| panic!("no {end:?} in {:?}", String::from_utf8_lossy(&self.read)));
        self.read.clear();
    }

    /// All that comes until the server closes the connection, in order or not.
    pub async fn rest(self) -> String {
        String::from_utf8(self.bytes().await).expect("UTF-8")
    }

    /// The same, whatever it is.
    pub async fn bytes(mut self) -> Vec<u8> {
        let ended = timeout(PATIENCE, self.stream.read_to_end(&mut self.read)).await;
        // A reset is an end, too.
        drop(ended.expect("the connection to end"));
        self.read
    }
}
