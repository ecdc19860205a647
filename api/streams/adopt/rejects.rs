//! Files of refused items: a line of Extended JSON each, which can be mended and adopted.
//!
//! `{"_id": ..., "place": 3, "source": "...", "reason": "...", "document": {...}}`: `document` is the item
//! with its owner, as it is in the source. `_id`, `place` and the name of the source are its identity:
//! however often a line is adopted, it is stored once.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};

use super::item::DocumentReader;
use super::source_item::{SizedItem, SourceItem};
use super::watch::RefusedItem;
use crate::lines::bounded_lines;

/// Longest line that is read, in bytes: that of the largest document of MongoDB, in which each character is
/// escaped.
const LONGEST: u64 = 128 << 20;

/// A file that is written.
#[derive(Debug)]
pub struct Rejects {
    file: BufWriter<File>,
    source: String,
    failed: Option<io::Error>,
}

impl Rejects {
    /// Opens the file for items of `source`; what it has stays.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(path: &Path, source: String) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        // A machine that failed, or an editor, may have left a line without its end.
        if file.metadata()?.len() > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self { file: BufWriter::new(file), source, failed: None })
    }

    pub(crate) fn write(&mut self, refused: &RefusedItem) {
        let RefusedItem { id, place, reason, document, known: _ } = refused;
        let mut line = doc! { "_id": id };
        if let Some(place) = place {
            line.insert("place", i64::from(*place));
        }
        line.extend(doc! { "source": &self.source, "reason": reason.to_string(), "document": document });
        // At once, so that no line is written in two parts.
        let line = format!("{}\n", Bson::Document(line).into_canonical_extjson());
        self.failed = self.failed.take().or(self.file.write_all(line.as_bytes()).err());
    }

    /// Hands all lines to the system.
    ///
    /// # Errors
    /// Some line was not written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.failed.take().map_or_else(|| self.file.flush(), Err)
    }
}

/// The items of a file of rejects, one after the other.
///
/// # Errors
/// The file cannot be read, a line is invalid, or it is of another source.
pub(crate) fn read(
    path: &Path,
    reader: &DocumentReader,
) -> io::Result<impl Iterator<Item = io::Result<SizedItem>>> {
    let lines = bounded_lines(BufReader::new(File::open(path)?), LONGEST).enumerate();
    let lines = lines.filter(|(_, line)| !line.as_ref().is_ok_and(|line| line.trim_ascii().is_empty()));
    Ok(lines.map(|(index, line)| {
        let wrong = |why: &str| io::Error::other(format!("line {}: {why}", index + 1));
        let value: serde_json::Value =
            serde_json::from_slice(&line?).map_err(|error| wrong(&error.to_string()))?;
        let line = Bson::try_from(value).map_err(|error| wrong(&error.to_string()))?;
        let Bson::Document(line) = line else { return Err(wrong("is no object")) };
        let place = match line.get("place") {
            None | Some(Bson::Null) => None,
            Some(Bson::Int32(place)) => u32::try_from(*place).ok(),
            Some(Bson::Int64(place)) => u32::try_from(*place).ok(),
            Some(_) => return Err(wrong("`place` must be a whole number")),
        };
        match line.get_str("source") {
            Ok(source) if source == reader.source => {}
            Ok(source) => return Err(wrong(&format!("is of {source}, and not of {}", reader.source))),
            Err(_) => return Err(wrong("must name its `source`, as --rejects writes it")),
        }
        let part = part(&line, place, reader);
        part.ok_or_else(|| wrong("must have `_id` and `document`, as --rejects writes them"))
    }))
}

fn part(line: &Document, place: Option<u32>, reader: &DocumentReader) -> Option<SizedItem> {
    let (id, document) = (line.get("_id")?, line.get_document("document").ok()?);
    let id = RawDocumentBuf::try_from(&doc! { "": id }).ok()?;
    let id = id.iter().next()?.ok()?.1;
    let document = RawDocumentBuf::try_from(document).ok()?;
    let found = match reader.item(id, place, &document) {
        Ok(item) => SourceItem::Item(item),
        Err(refused) => SourceItem::Refused(refused),
    };
    Some((found, 1))
}
