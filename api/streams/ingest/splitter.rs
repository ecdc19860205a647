//! Splits bytes into lines, in constant memory, whatever the pieces they come in.

use super::stream::LONGEST_ROW;

/// The UTF-8 form of U+FEFF, which some programs put before the first line.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One line, without its line break.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: u64,
    /// At most as many as the splitter keeps.
    pub bytes: Vec<u8>,
    /// Its size in the input, in bytes, with its line break and the part that was cut off.
    pub size: u64,
    /// Whether it was longer, so that `bytes` is only its beginning.
    pub cut: bool,
    /// Its line break: LF or CRLF.
    pub line_break: &'static [u8],
}

impl Line {
    /// Whether there is nothing in it but white space.
    pub fn is_blank(&self) -> bool {
        !self.cut && self.bytes.trim_ascii().is_empty()
    }
}

/// Splits input into lines, which end with LF or CRLF. A byte order mark before the first is skipped.
#[derive(Debug)]
pub struct Splitter {
    longest: usize,
    current: Line,
    read: u64,
}

impl Default for Splitter {
    /// One that keeps rows: [`LONGEST_ROW`] bytes of each.
    fn default() -> Self {
        Self::keeping(LONGEST_ROW)
    }
}

impl Splitter {
    /// One that keeps this many bytes of a line, at most.
    pub fn keeping(longest: usize) -> Self {
        Self { longest, current: Line::default(), read: 0 }
    }

    /// Takes bytes up to the end of the current line. Returns their number, and the line if it has ended.
    pub fn take(&mut self, bytes: &[u8]) -> (usize, Option<Line>) {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        let line = &mut self.current;
        let kept = part.len().min(self.longest - line.bytes.len());
        line.bytes.extend_from_slice(&part[..kept]);
        line.cut |= kept < part.len();
        let taken = part.len() + usize::from(end.is_some());
        line.size += taken as u64;
        (taken, end.is_some().then(|| self.end()))
    }

    /// The last line, which need not end with a line break.
    pub fn finish(&mut self) -> Option<Line> {
        (self.current.size > 0).then(|| self.end())
    }

    fn end(&mut self) -> Line {
        self.read += 1;
        let mut line = std::mem::take(&mut self.current);
        line.number = self.read;
        let crlf = line.bytes.pop_if(|last| *last == b'\r').is_some();
        line.line_break = if crlf { b"\r\n" } else { b"\n" };
        if line.number == 1 && line.bytes.starts_with(BYTE_ORDER_MARK) {
            line.bytes.drain(..BYTE_ORDER_MARK.len());
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a text that comes in pieces of so many bytes.
    fn lines(text: &[u8], piece: usize) -> Vec<Line> {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        for mut bytes in text.chunks(piece) {
            while !bytes.is_empty() {
                let (taken, line) = splitter.take(bytes);
                bytes = &bytes[taken..];
                lines.extend(line);
            }
        }
        lines.extend(splitter.finish());
        assert_eq!(splitter.read, lines.len() as u64);
        lines
    }

    #[test]
    fn any_line_break_will_do() {
        for piece in 1..20 {
            let found = lines(b"\xEF\xBB\xBFa\r\n\nb\rc\n\xEF\xBB\xBFd", piece);
            let texts: Vec<_> = found.iter().map(|line| (line.number, &line.bytes[..], line.size)).collect();
            assert_eq!(texts, [(1, &b"a"[..], 6), (2, b"", 1), (3, b"b\rc", 4), (4, b"\xEF\xBB\xBFd", 4)]);
        }
        assert!(lines(b"", 1).is_empty());
    }

    #[test]
    fn a_long_line_is_cut_and_counted() {
        let longest = "x".repeat(LONGEST_ROW);
        let text = format!("{longest}\n{longest}x\n{}\nlast", longest.repeat(5));
        let size = LONGEST_ROW as u64;
        for piece in [1_000, LONGEST_ROW, text.len()] {
            let found = lines(text.as_bytes(), piece);
            let shapes: Vec<_> = found.iter().map(|line| (line.bytes.len(), line.size, line.cut)).collect();
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
}
