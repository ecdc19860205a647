//! Physical lines, in constant memory.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use super::LONGEST_ROW;

/// The UTF-8 form of U+FEFF, which some programs put before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One line, without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Counted from 1.
    pub number: u64,
    /// At most [`LONGEST_ROW`].
    pub bytes: Vec<u8>,
    /// Bytes of the file that it took, its line break and what was cut off included.
    pub size: u64,
    /// Whether it was longer than [`LONGEST_ROW`], so that `bytes` is only its beginning.
    pub cut: bool,
}

/// The lines of a file.
pub(super) struct Lines {
    input: BufReader<Box<dyn Read + Send>>,
    read: u64,
}

impl Lines {
    pub fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input: BufReader::with_capacity(LONGEST_ROW, input), read: 0 }
    }

    /// The next bytes, without taking them; none at the end of the file.
    pub fn peek(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    /// Whether there is a whole line that can be had without waiting for the file.
    pub fn ready(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }

    /// The next line; `None` at the end of the file. The last one need not end with a line break.
    pub fn read(&mut self) -> io::Result<Option<Line>> {
        let mut line = Line { number: self.read + 1, bytes: Vec::new(), size: 0, cut: false };
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                if line.size == 0 {
                    return Ok(None);
                }
                break;
            }
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let kept = part.len().min(LONGEST_ROW - line.bytes.len());
            line.bytes.extend_from_slice(&part[..kept]);
            line.cut |= kept < part.len();
            let taken = part.len() + usize::from(end.is_some());
            line.size += taken as u64;
            self.input.consume(taken);
            if end.is_some() {
                break;
            }
        }
        self.read += 1;
        if line.bytes.last() == Some(&b'\r') {
            line.bytes.pop();
        }
        if line.number == 1 && line.bytes.starts_with(BYTE_ORDER_MARK) {
            line.bytes.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: Vec<u8>) -> Vec<Line> {
        let mut lines = Lines::new(Box::new(io::Cursor::new(text)));
        std::iter::from_fn(|| lines.read().unwrap()).collect()
    }

    #[test]
    fn any_line_break_will_do() {
        let found = lines(b"\xEF\xBB\xBFa\r\n\nb\rc\n\xEF\xBB\xBFd".to_vec());
        let texts: Vec<_> = found.iter().map(|line| (line.number, &line.bytes[..], line.size)).collect();
        assert_eq!(texts, [(1, &b"a"[..], 6), (2, b"", 1), (3, b"b\rc", 4), (4, b"\xEF\xBB\xBFd", 4)]);
        assert!(lines(Vec::new()).is_empty());
    }

    #[test]
    fn a_long_line_is_cut_and_counted() {
        let longest = "x".repeat(LONGEST_ROW);
        let found = lines(format!("{longest}\n{longest}x\n{}\nlast", longest.repeat(5)).into_bytes());
        let shapes: Vec<_> = found.iter().map(|line| (line.bytes.len(), line.size, line.cut)).collect();
        let size = LONGEST_ROW as u64;
        assert_eq!(
            shapes,
            [
                (LONGEST_ROW, size + 1, false),
                (LONGEST_ROW, size + 2, true),
                (LONGEST_ROW, 5 * size + 1, true),
                (4, 4, false)
            ]
        );
    }
}
