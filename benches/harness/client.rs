//! One connection: HTTP/1.1 by hand.
//!
//! The load shares the machine's cores with what it measures, so it does no more than it must: it writes a
//! request in one piece, and reads status and length of an answer.

use std::io::{Error, ErrorKind, Write};
use std::net::SocketAddr;
use std::ops::Range;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The header by which a request and its repeat are known for one.
pub const KEY: &str = "idempotency-key";

/// What a client sends in that header: 128 random bits, in hexadecimal.
#[derive(Clone, Copy)]
pub struct Key(u128);

impl Key {
    pub fn fresh() -> Self {
        Self(rand::random())
    }
}

/// What a server has said.
pub struct Answer<'a> {
    pub status: u16,
    pub head: &'a str,
    pub body: &'a [u8],
}

/// A connection, made anew after it has failed.
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

    /// Posts a trade of each quantity, as one trade or as an array; true when they are acknowledged.
    ///
    /// # Errors
    /// No answer, or none that can be understood.
    pub async fn append(
        &mut self,
        customer: u64,
        quantities: &Range<u64>,
        key: Option<Key>,
    ) -> std::io::Result<bool> {
        write_body(&mut self.body, quantities)?;
        self.request.clear();
        write!(
            self.request,
            "POST /v1/customers/{customer}/trades HTTP/1.1\r\nhost: bench\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n",
            self.body.len()
        )?;
        if let Some(Key(key)) = key {
            write!(self.request, "{KEY}: {key:032x}\r\n")?;
        }
        self.request.extend_from_slice(b"\r\n");
        self.request.extend_from_slice(&self.body);
        Ok(self.exchange().await?.status == 201)
    }

    /// Connects, so that the first request finds it done.
    ///
    /// # Errors
    /// Nobody accepts.
    pub async fn connect(&mut self) -> std::io::Result<()> {
        if self.stream.is_none() {
            self.stream = Some(connect(self.address).await?);
        }
        Ok(())
    }

    /// Posts JSON.
    ///
    /// # Errors
    /// No answer, or none that can be understood.
    pub async fn post(&mut self, path: &str, json: &str) -> std::io::Result<Answer<'_>> {
        self.request.clear();
        write!(
            self.request,
            "POST {path} HTTP/1.1\r\nhost: bench\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{json}",
            json.len()
        )?;
        self.exchange().await
    }

    /// Gets a path. `headers` are whole lines with their ends.
    ///
    /// # Errors
    /// No answer, or none that can be understood.
    pub async fn get(&mut self, path: &str, headers: &str) -> std::io::Result<Answer<'_>> {
        self.request.clear();
        write!(self.request, "GET {path} HTTP/1.1\r\nhost: bench\r\n{headers}\r\n")?;
        self.exchange().await
    }

    async fn exchange(&mut self) -> std::io::Result<Answer<'_>> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.address).await?,
        };
        // Kept only when the answer was read to its end.
        let stream = self.stream.insert(stream);
        match exchange(stream, &self.request, &mut self.answer).await {
            Ok((status, head)) => Ok(Answer {
                status,
                head: str::from_utf8(&self.answer[..head]).unwrap_or_default(),
                body: &self.answer[head + 4..],
            }),
            Err(error) => {
                self.stream = None;
                Err(error)
            }
        }
    }
}

impl Answer<'_> {
    /// The value of a header, whose name is in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn write_body(body: &mut Vec<u8>, quantities: &Range<u64>) -> std::io::Result<()> {
    body.clear();
    let one = quantities.end - quantities.start == 1;
    for quantity in quantities.clone() {
        let before = if one {
            ""
        } else if quantity == quantities.start {
            "["
        } else {
            ","
        };
        write!(body, r#"{before}{{"type":"buy","ticker":"MDB","qty":{quantity}}}"#)?;
    }
    if !one {
        body.push(b']');
    }
    Ok(())
}

/// The status of the answer, which is read whole, and the length of its head.
async fn exchange(
    stream: &mut TcpStream,
    request: &[u8],
    answer: &mut Vec<u8>,
) -> std::io::Result<(u16, usize)> {
    stream.write_all(request).await?;
    answer.clear();
    loop {
        if stream.read_buf(answer).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let Some(head) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
        let (status, length) = read_head(&answer[..head]).ok_or_else(|| {
            Error::new(ErrorKind::InvalidData, "an answer without a status or a content-length")
        })?;
        if answer.len() >= head + 4 + length {
            return Ok((status, head));
        }
    }
}

/// Status and content-length, whose name hyper and Fastify write in small letters.
fn read_head(head: &[u8]) -> Option<(u16, usize)> {
    let head = str::from_utf8(head).ok()?;
    let status = head.get(9..12)?.parse().ok()?;
    // Neither has a body, nor the length of one.
    if matches!(status, 204 | 304) {
        return Some((status, 0));
    }
    let (_, rest) = head.split_once("\r\ncontent-length: ")?;
    Some((status, rest.split("\r\n").next()?.parse().ok()?))
}
