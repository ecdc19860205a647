//! One connection: HTTP/1.1 by hand.
//!
//! The load shares the machine's cores with what it measures, so it does no more than it must: it writes a
//! request in one piece, and reads status and length of an answer.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::ops::Range;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The header that identifies a request and its repeats.
pub const KEY: &str = "idempotency-key";

pub struct Answer<'a> {
    pub status: u16,
    head: &'a str,
    pub body: &'a [u8],
}

/// A connection. After a failure the next request opens a new one.
pub struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
    body: Vec<u8>,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, stream: None, body: Vec::new(), request: Vec::new(), answer: Vec::new() }
    }

    /// Connects, so that the first request does not have to.
    pub async fn connect(&mut self) -> std::io::Result<()> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        Ok(())
    }

    /// Posts a trade of each quantity, as one trade or as an array; true when they are acknowledged. A key is
    /// written in hexadecimal.
    pub async fn append(
        &mut self,
        customer: u64,
        trades: &Range<u64>,
        key: Option<u128>,
    ) -> std::io::Result<bool> {
        self.body.clear();
        let one = trades.end - trades.start == 1;
        for trade in trades.clone() {
            let before = match trade == trades.start {
                _ if one => "",
                true => "[",
                false => ",",
            };
            write!(self.body, r#"{before}{{"type":"buy","ticker":"MDB","qty":{trade}}}"#)?;
        }
        self.body.extend_from_slice(if one { b"" } else { b"]" });
        self.begin_post(&format!("/v1/customers/{customer}/trades"), self.body.len())?;
        if let Some(key) = key {
            write!(self.request, "{KEY}: {key:032x}\r\n")?;
        }
        self.request.extend_from_slice(b"\r\n");
        self.request.extend_from_slice(&self.body);
        Ok(self.exchange().await?.status == 201)
    }

    /// Posts JSON.
    pub async fn post(&mut self, path: &str, json: &str) -> std::io::Result<Answer<'_>> {
        self.begin_post(path, json.len())?;
        write!(self.request, "\r\n{json}")?;
        self.exchange().await
    }

    /// Gets a path. `headers` are whole lines with their ends.
    pub async fn get(&mut self, path: &str, headers: &str) -> std::io::Result<Answer<'_>> {
        self.request.clear();
        write!(self.request, "GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n")?;
        self.exchange().await
    }

    fn begin_post(&mut self, path: &str, length: usize) -> std::io::Result<()> {
        self.request.clear();
        write!(
            self.request,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
        )
    }

    /// Sends the request, and reads the answer to its end.
    async fn exchange(&mut self) -> std::io::Result<Answer<'_>> {
        self.connect().await?;
        // Put back only in the end.
        let mut stream = self.stream.take().ok_or(ErrorKind::NotConnected)?;
        stream.write_all(&self.request).await?;
        self.answer.clear();
        let (status, head) = loop {
            if stream.read_buf(&mut self.answer).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let Some(head) = self.answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
            let (status, length) = read_head(&self.answer[..head]).ok_or(ErrorKind::InvalidData)?;
            if self.answer.len() >= head + 4 + length {
                break (status, head);
            }
        };
        self.stream = Some(stream);
        let text = str::from_utf8(&self.answer[..head]).unwrap_or_default();
        Ok(Answer { status, head: text, body: &self.answer[head + 4..] })
    }
}

impl Answer<'_> {
    /// The value of a header, whose name is in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Status and content-length, whose name hyper and Fastify write in small letters.
fn read_head(head: &[u8]) -> Option<(u16, usize)> {
    let head = str::from_utf8(head).ok()?;
    let status = head.get(9..12)?.parse().ok()?;
    // These have neither a body nor its length.
    if matches!(status, 204 | 304) {
        return Some((status, 0));
    }
    let (_, rest) = head.split_once("\r\ncontent-length: ")?;
    Some((status, rest.split("\r\n").next()?.parse().ok()?))
}
