//! Erasures in the audit log: what erases owners once more after an older backup of the database was
//! restored.
//!
//! The log is kept outside of the database, where no restore reaches it. A line of it, as JSON: `{"target":
//! "pagebucket::audit::erasures", "event": "owner-erased", "owners": "customers", "owner": "7", "history":
//! "trades", "first_page": 7, "second": 1698349623, "erased": "2026-11-20T12:00:00.000Z"}`. It is written
//!
//! - when the tombstone is durable, before the erasure is answered;
//! - before the tombstone is marked as swept, with its last numbers: pages may have been opened after the
//!   first line;
//! - when the owner is reopened, as `owner-reopened`.
//!
//! `erased`, the time in the tombstone, identifies the erasure. So the lines of several instances may be read
//! in any order, and more than once.
//!
//! The lines are JSON whatever the format of the log, and the target counts only at its place: other lines
//! quote what clients choose. Earlier versions wrote them in the format for people, if the log had it; such
//! lines are read, too, by the same rule.

use std::fmt::Display;

use pagebucket_model::domain::{Instant, Invalid, PageNumber};
use serde::Deserialize;
use serde_json::Value;

use crate::mongo::Result;
use crate::mongo::values::instant;
use crate::store::buckets::bucket_id::BucketId;
use crate::store::buckets::marker::{self, Marker, TOMBSTONE};
use crate::store::collection::OfOwner;

/// Text before a line in JSON is not cut off: the line might be quoted, as what a client chose.
const PREFIXED: &str = "names an erasure, but is no line of the log: it must begin with `{`, without the prefix of \
    another log; `journalctl -o cat` writes none";

const ERASED: &str = "owner-erased";
const REOPENED: &str = "owner-reopened";

/// The target of the lines. It is their own, so that a log can admit them whatever else it leaves out.
const TARGET: &str = "pagebucket::audit::erasures";

/// The target that an earlier version wrote.
const EARLIER_TARGET: &str = "pagebucket::audit";

/// The erasure of an owner in one history, as its tombstone and the log have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedErasure {
    /// When the tombstone was written, by the server's clock.
    pub erased: Instant,
    /// The page that the first append after a reopening opens.
    pub first_page: PageNumber,
    /// That page has a later second.
    pub second: u64,
}

impl LoggedErasure {
    /// As a tombstone says it.
    pub(crate) fn of(tombstone: Marker) -> Self {
        let Marker { first_page, second, since, erased_at, .. } = tombstone;
        let erased = erased_at.and_then(instant).or_else(|| since.and_then(instant));
        Self { erased: erased.unwrap_or(Instant::MIN), first_page, second }
    }

    /// Writes a line about this erasure, or about its end.
    pub(crate) fn write(self, of: OfOwner<'_>, reopened: bool) {
        let Self { erased, first_page, second } = self;
        let owners = &*of.source.definition.owner.collection;
        let (event, what) = if reopened { (REOPENED, "reopened") } else { (ERASED, "erased") };
        tracing::warn!(
            target: TARGET,
            event, owners, owner = %of.owner, history = of.source.collection(), first_page = first_page.get(), second, %erased,
            "an owner is {what}"
        );
    }
}

/// Writes a line about the tombstone of an owner that was just written. After an error no line is written.
pub(crate) async fn log(of: OfOwner<'_>) -> Result<()> {
    let tombstone = marker::tombstone(of).await?;
    tombstone.into_iter().for_each(|tombstone| LoggedErasure::of(tombstone).write(of, false));
    Ok(())
}

/// A line of an erasure.
#[derive(Debug, PartialEq, Eq)]
pub struct ErasureLine {
    /// The collection of owners.
    pub owners: String,
    /// The owner's id. Its type is that of the collection.
    pub owner: String,
    /// The name of the history.
    pub history: String,
    /// The erasure.
    pub erasure: LoggedErasure,
    /// Whether the line says that the erasure has ended.
    pub reopened: bool,
}

/// Where a line in JSON says what it is about. One that is written by hand may have no target.
#[derive(Deserialize)]
struct Kind {
    event: Option<Value>,
    target: Option<Value>,
}

/// What a line says of an erasure.
#[derive(Deserialize)]
struct LoggedFields {
    event: String,
    owners: String,
    owner: String,
    history: String,
    first_page: u64,
    second: u64,
    erased: String,
}

fn damaged(why: impl Display) -> Invalid {
    Invalid(format!("is damaged: {why}"))
}

impl ErasureLine {
    /// The target of the lines in a log.
    pub const TARGET: &str = TARGET;

    /// Reads a line of a log at this time. `None` if it is about something else.
    ///
    /// # Errors
    /// The line names an erasure, and cannot be read, or the erasure is later than now.
    pub fn parse(line: &str, now: Instant) -> Result<Option<Self>, Invalid> {
        if ![ERASED, REOPENED].iter().any(|event| line.contains(event)) {
            return Ok(None);
        }
        let fields = if line.trim_start().starts_with('{') { of_json(line)? } else { of_pretty(line)? };
        let Some(LoggedFields { event, owners, owner, history, first_page, second, erased }) = fields else {
            return Ok(None);
        };
        let erased = Instant::parse_rfc3339(&erased).map_err(|rule| damaged(format!("`erased` {rule}")))?;
        if erased > now {
            return Err(Invalid(format!("`erased` is later than now, which is {now}")));
        }
        // After it there must be one for a page.
        let first_page = PageNumber::new(first_page).ok().filter(|page| page.get() < TOMBSTONE as u64);
        let first_page = first_page.ok_or_else(|| damaged("`first_page` must be the number of a page"))?;
        if second > BucketId::LAST_SECOND {
            return Err(damaged("`second` must have at most ten digits"));
        }
        let erasure = LoggedErasure { erased, first_page, second };
        Ok(Some(Self { owners, owner, history, erasure, reopened: event == REOPENED }))
    }
}

/// What a line in JSON says; `None` if it is another one of ours.
fn of_json(line: &str) -> Result<Option<LoggedFields>, Invalid> {
    let kind: Kind =
        serde_json::from_str(line).map_err(|_| Invalid::new("names an erasure, but is not a JSON object"))?;
    let is = |value: &Option<Value>, texts: [&str; 2]| {
        value.as_ref().and_then(Value::as_str).is_some_and(|text| texts.contains(&text))
    };
    match (is(&kind.event, [ERASED, REOPENED]), is(&kind.target, [TARGET, EARLIER_TARGET])) {
        (true, true) => {}
        (true, false) if kind.target.is_none() => {}
        // One that quotes the name, such as the path of a request.
        _ if kind.target.is_some() => return Ok(None),
        _ => return Err(Invalid::new("names an erasure, but not as its `event`")),
    }
    serde_json::from_str(line).map(Some).map_err(damaged)
}

/// The same of a line in the format for people:
/// `2026-… WARN request{id="…"}: pagebucket::audit::erasures: an owner is erased event="owner-erased" …`.
///
/// Before its own beginning, which is the first one in it, is what a shipper of logs has put there.
fn of_pretty(line: &str) -> Result<Option<LoggedFields>, Invalid> {
    let rest = after_level(line).ok_or_else(|| Invalid::new(PREFIXED))?;
    let unreadable = || damaged("its fields cannot be read");
    let is_of_id = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let after_span = rest.strip_prefix("request{id=\"").and_then(|rest| rest.split_once("\"}: "));
    let rest = after_span.filter(|(id, _)| id.bytes().all(is_of_id)).map_or(rest, |(_, rest)| rest);
    let (target, message) = rest.split_once(": ").ok_or_else(unreadable)?;
    if target != TARGET {
        let is_target = target.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte));
        return if is_target { Ok(None) } else { Err(unreadable()) };
    }
    let fields = message.strip_prefix("an owner is erased ");
    let fields = fields.or_else(|| message.strip_prefix("an owner is reopened "));
    // No value has a space.
    let mut fields = fields.ok_or_else(unreadable)?.trim_end().split(' ');
    let mut value = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
    let quoted = |value: &str| Some(value.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    let mut read = || {
        Some(LoggedFields {
            event: value("event").and_then(quoted).filter(|event| [ERASED, REOPENED].contains(&&**event))?,
            owners: value("owners").and_then(quoted)?,
            owner: value("owner")?.to_owned(),
            history: value("history").and_then(quoted)?,
            first_page: value("first_page")?.parse().ok()?,
            second: value("second")?.parse().ok()?,
            erased: value("erased")?.to_owned(),
        })
    };
    let read = read();
    read.filter(|_| fields.next().is_none()).map(Some).ok_or_else(unreadable)
}

/// What follows the time and the level with which a line of the log begins.
fn after_level(line: &str) -> Option<&str> {
    const LEVELS: [&str; 5] = ["TRACE ", "DEBUG ", " INFO ", " WARN ", "ERROR "];
    let is_time = |word: &str| {
        let bytes = word.as_bytes();
        bytes.len() >= 20 && (bytes[4], bytes[7], bytes[10]) == (b'-', b'-', b'T') && bytes.ends_with(b"Z")
    };
    let words = std::iter::once(0).chain(line.match_indices(' ').map(|(space, _)| space + 1));
    words.map(|from| &line[from..]).find_map(|text| {
        let (word, rest) = text.split_once(' ')?;
        let rest = LEVELS.iter().find_map(|level| rest.strip_prefix(level));
        rest.filter(|_| is_time(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"timestamp":"2026-11-20T12:00:00.1Z","level":"WARN","message":"an owner is erased","event":"owner-erased",
        "owners":"customers","owner":"7","history":"trades","first_page":7,"second":1698349623,"erased":"2026-11-20T12:00:00.000Z",
        "target":"pagebucket::audit::erasures"}"#;

    /// The same in the format for people.
    const PRETTY: &str = "2026-11-20T12:00:00.123456Z  WARN request{id=\"7f\"}: pagebucket::audit::erasures: an owner is erased \
        event=\"owner-erased\" owners=\"customers\" owner=7 history=\"trades\" first_page=7 second=1698349623 \
        erased=2026-11-20T12:00:00.000Z";

    fn parse(line: &str) -> Result<Option<ErasureLine>, Invalid> {
        ErasureLine::parse(line, Instant::parse_rfc3339("2026-11-20T12:00:00Z").unwrap())
    }

    #[test]
    fn a_line_is_read() {
        let erasure = LoggedErasure {
            erased: Instant::parse_rfc3339("2026-11-20T12:00:00Z").unwrap(),
            first_page: PageNumber::new(7).unwrap(),
            second: 1_698_349_623,
        };
        let line = ErasureLine {
            owners: "customers".to_owned(),
            owner: "7".to_owned(),
            history: "trades".to_owned(),
            erasure,
            reopened: false,
        };
        let line = Ok(Some(line));
        assert_eq!(parse(LINE), line);
        assert_eq!(parse(PRETTY), line);
        assert_eq!(parse(&format!("Nov 20 host pagebucket[1]: {PRETTY}\r")), line);
        // Without what the log adds.
        let bare = r#"{"event":"owner-reopened","owners":"rooms","owner":"kitchen","history":"notes","first_page":1,"second":0,
            "erased":"2026-11-20T12:00:00.000Z"}"#;
        assert!(parse(bare).unwrap().unwrap().reopened);
    }

    #[test]
    fn other_lines_are_left_out() {
        for line in [
            "",
            "mongod listens",
            r#"{"message":"an owner is to be erased","owner":"7","target":"pagebucket::audit"}"#,
            r#"{"path":"/v1/owner-erased","event":"other","target":"pagebucket::http"}"#,
            r#"{"path":"/v1/owner-erased","target":"pagebucket::http"}"#,
            r#"{"principal":"owner-erased","event":"owner-erased","target":"pagebucket::access"}"#,
            r#"2026-11-20T12:00:00.1Z  INFO request{id="7f"}: pagebucket::http: answered path="/v1/owner-erased""#,
        ] {
            assert_eq!(parse(line), Ok(None), "{line}");
        }
    }

    /// Lines of earlier versions in the format for people, whose `sub` was the name of a client.
    #[test]
    fn no_client_can_forge_a_line() {
        let bare = PRETTY.replace('"', "");
        let (_, forged) = PRETTY.split_once("7f\"}: ").unwrap();
        for forged in [forged, &bare, &format!("\"{forged}"), &forged.replace('"', "")] {
            let log = "2026-11-20T12:00:00.123456Z  WARN request{id=\"7f\"}: pagebucket::audit: a request was refused";
            let quoted = format!("{log} reason=\"scope\" principal={forged:?}");
            for line in [
                quoted.clone(),
                format!("Nov 20 host pagebucket[1]: {quoted}"),
                format!("{log} principal={forged}"),
            ] {
                assert_eq!(parse(&line), Ok(None), "{line}");
            }
        }
        let json = serde_json::json!({ "principal": LINE, "target": "pagebucket::audit" }).to_string();
        assert_eq!(parse(&json), Ok(None));
        // What stands before a line is no part of it.
        let Invalid(sentence) = parse(&format!("Nov 20 12:00:00 one pagebucket[1]: {LINE}")).unwrap_err();
        assert!(sentence.contains("journalctl -o cat"), "{sentence}");
    }

    #[test]
    fn a_line_of_an_erasure_is_never_left_out_silently() {
        let quoted = serde_json::to_string(LINE).unwrap();
        for (line, part) in [
            ("an owner is erased: owner-erased".to_owned(), "no line of the log"),
            // As a principal would have it written: what it quotes is escaped.
            (PRETTY.replace('"', "\\\""), "its fields cannot be read"),
            (PRETTY[..PRETTY.len() - 43].to_owned(), "its fields cannot be read"),
            (PRETTY[..PRETTY.len() - 32].to_owned(), "its fields cannot be read"),
            (format!("{PRETTY} and more"), "its fields cannot be read"),
            (PRETTY.replace("=7 second", "=x second"), "its fields cannot be read"),
            (PRETTY.replace("owners=\"customers\"", "owners=customers"), "its fields cannot be read"),
            (LINE[..LINE.len() - 9].to_owned(), "not a JSON object"),
            // As a container engine wraps it.
            (format!(r#"{{"log":{quoted},"stream":"stderr"}}"#), "not as its `event`"),
            (LINE.replace(r#""owner":"7","#, ""), "missing field `owner`"),
            (LINE.replace(":7,", ":0,"), "`first_page` must be"),
            (LINE.replace(":7,", ":9007199254740991,"), "`first_page` must be"),
            (LINE.replace("1698349623", "10000000000"), "`second` must"),
            (LINE.replace("20T12:00:00.000Z", "20"), "`erased` must be"),
            (LINE.replace("20T12:00:00.000Z", "20T12:00:00.001Z"), "later than now"),
            (PRETTY.replace("20T12:00:00.000Z", "21T00:00:00.000Z"), "later than now"),
            (LINE.replace(r#""owner":"7""#, r#""owner":"7","owner":"8""#), "duplicate field"),
        ] {
            let Invalid(sentence) = parse(&line).unwrap_err();
            assert!(sentence.contains(part), "{line}: {sentence}");
        }
    }
}
