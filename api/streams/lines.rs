//! Lines of a file that is read to recover something, none of which fills the memory.

use std::io::{self, BufRead, Read};

/// The lines of a file without their ends, each of at most this number of bytes.
pub fn bounded_lines(mut file: impl BufRead, most: u64) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    let mut number = 0_u64;
    std::iter::from_fn(move || {
        number += 1;
        let mut line = Vec::new();
        // One byte more, for its end.
        match file.by_ref().take(most + 1).read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if line.len() as u64 > most {
            return Some(Err(io::Error::other(format!("line {number} is longer than {most} bytes"))));
        }
        Some(Ok(line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_bounded() {
        let read = |text: &str| {
            let lines = bounded_lines(text.as_bytes(), 4);
            lines.map(|line| line.map_err(|error| error.to_string())).collect::<Result<Vec<_>, _>>()
        };
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read("1234\n\n5"), Ok(vec![b"1234".to_vec(), vec![], b"5".to_vec()]));
        assert_eq!(read("1234"), Ok(vec![b"1234".to_vec()]));
        assert_eq!(read("1\n12345\n"), Err("line 2 is longer than 4 bytes".to_owned()));
        let endless = bounded_lines(io::BufReader::new(io::repeat(b'x')), 1 << 20).next();
        assert!(endless.is_some_and(|line| line.is_err()));
    }
}
