//! Physical lines, in constant memory.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use crate::ingest::{LONGEST_ROW, Line, Splitter};

/// The lines of a file.
pub(super) struct Lines {
    input: BufReader<Box<dyn Read + Send>>,
    splitter: Splitter,
}

impl Lines {
    pub fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input: BufReader::with_capacity(LONGEST_ROW, input), splitter: Splitter::default() }
    }

    /// The next bytes, without taking them; none at the end of the file.
    pub fn peek(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    /// Whether there is a whole line that needs no waiting for the file.
    pub fn ready(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }

    /// The next line; `None` at the end of the file. The last one need not end with a line break.
    pub fn read(&mut self) -> io::Result<Option<Line>> {
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                return Ok(self.splitter.finish());
            }
            let (taken, line) = self.splitter.take(chunk);
            self.input.consume(taken);
            if line.is_some() {
                return Ok(line);
            }
        }
    }
}
