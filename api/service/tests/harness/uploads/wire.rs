//! A connection on which an upload is sent piece by piece, and its answer read meanwhile.

use std::net::SocketAddr;

use crate::PATIENCE;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

pub struct Upload {
    write: Writing,
    read: Reading,
}

pub struct Writing(OwnedWriteHalf);

/// Reads the answer: its head, then its body a line at a time.
pub struct Reading {
    stream: BufReader<OwnedReadHalf>,
    head: Option<String>,
    /// Of the body, without chunks' sizes.
    body: Vec<u8>,
    ended: bool,
}

impl Upload {
    /// Sends the head of a chunked upload.
    pub async fn begin(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let (read, write) = stream.into_split();
        let read = BufReader::new(read);
        let mut upload = Self {
            write: Writing(write),
            read: Reading { stream: read, head: None, body: Vec::new(), ended: false },
        };
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/x-ndjson\r\n\
             Transfer-Encoding: chunked\r\n{headers}\r\n"
        );
        upload.write.raw(&head).await;
        upload
    }

    pub fn split(self) -> (Reading, Writing) {
        (self.read, self.write)
    }

    pub async fn send(&mut self, text: &str) {
        self.write.send(text).await;
    }

    /// Sends half a chunk, and nothing more.
    pub async fn cut(mut self, text: &str) -> Reading {
        self.write.raw(&format!("{:x}\r\n{text}", text.len() + 100)).await;
        self.write.0.shutdown().await.expect("to say that nothing more comes");
        self.read
    }

    pub async fn end(&mut self) {
        self.write.end().await;
    }

    pub async fn head(&mut self) -> String {
        self.read.head().await
    }

    pub async fn line(&mut self) -> Option<Value> {
        self.read.line().await
    }
}

impl Writing {
    pub async fn send(&mut self, text: &str) {
        self.raw(&format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    pub async fn end(&mut self) {
        self.raw("0\r\n\r\n").await;
    }

    /// As [`Writing::send`], but the other side may have gone.
    pub async fn try_send(&mut self, text: &str) -> std::io::Result<()> {
        self.0.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
    }

    async fn raw(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.expect("to send");
    }
}

impl Reading {
    /// The head of the answer.
    pub async fn head(&mut self) -> String {
        if self.head.is_none() {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                let read = timeout(PATIENCE, self.stream.read_line(&mut head)).await.expect("a head in time");
                assert!(read.expect("a head") > 0, "the connection ended: {head}");
            }
            self.head = Some(head);
        }
        self.head.clone().unwrap_or_default()
    }

    /// The next line of the body; the last need not end. Panics when the answer is cut off.
    pub async fn line(&mut self) -> Option<Value> {
        let head = self.head().await.to_ascii_lowercase();
        loop {
            let end = self.body.iter().position(|byte| *byte == b'\n');
            let line: Vec<u8> = match end {
                Some(end) => self.body.drain(..=end).collect(),
                None if self.ended && self.body.is_empty() => return None,
                None if self.ended => std::mem::take(&mut self.body),
                None => {
                    self.more(&head).await;
                    continue;
                }
            };
            return Some(serde_json::from_slice(&line).expect("JSON"));
        }
    }

    async fn more(&mut self, head: &str) {
        let read = async {
            if let Some((_, rest)) = head.split_once("content-length: ") {
                let length: usize = rest.lines().next().expect("a line").parse().expect("a length");
                let mut body = vec![0; length];
                self.stream.read_exact(&mut body).await.expect("all of the body");
                self.body.extend(body);
                self.ended = true;
                return;
            }
            let mut size = String::new();
            self.stream.read_line(&mut size).await.expect("a chunk");
            let size = usize::from_str_radix(size.trim_end(), 16).expect("a chunk's size: the answer is cut");
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).await.expect("a whole chunk");
            self.body.extend(&chunk[..size]);
            self.ended = size == 0;
        };
        timeout(PATIENCE, read).await.expect("more of the answer in time");
    }
}
