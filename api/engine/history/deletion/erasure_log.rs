//! Erasures in the audit log: what erases owners once more after an older backup of the database was restored.
//!
//! The log is kept outside of the database, where no restore reaches it. A line of it, as JSON:
//! `{"target": "pagebucket::audit::erasures", "event": "owner-erased", "owners": "customers", "owner": "7", "history": "trades",
//! "first_page": 7, "second": 1698349623, "erased": "2026-11-20T12:00:00.000Z"}`. It is written
//!
//! - when the tombstone is durable, before the erasure is answered;
//! - before the tombstone is marked as swept, with its last numbers: pages may have been opened after the first line;
//! - when the owner is reopened, as `owner-reopened`.
//!
//! `erased`, the time in the tombstone, identifies the erasure. So the lines of several instances may be read in any order, and
//! more than once. Lines of the format for people are read, too: what a client may choose is quoted and escaped there.

use mongodb::bson::doc;
use mongodb::bson::raw::RawDocument;
use pagebucket_model::domain::{Instant, Invalid, PageNumber};
use serde::Deserialize;
use serde_json::Value;

use crate::history::buckets::bucket_id::BucketId;
use crate::history::buckets::marker::TOMBSTONE;
use crate::history::collection::OfOwner;
use crate::mongo::Result;
use crate::mongo::values::instant;

const ERASED: &str = "owner-erased";
const REOPENED: &str = "owner-reopened";

/// The target of the lines. It is their own, so that a log can admit them whatever else it leaves out.
const TARGET: &str = "pagebucket::audit::erasures";

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
    /// Reads the tombstone of an owner. `None` without one. Damage does not keep an erasure from being logged.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub(crate) async fn read(of: OfOwner<'_>) -> Result<Option<Self>> {
        let mut command = of.at_most(doc! { "page": TOMBSTONE }, 1);
        command.insert("projection", doc! { "firstPage": 1, "second": 1, "erased": 1, "since": 1 });
        let read = |tombstone: &RawDocument| {
            let number = |field| tombstone.get_i64(field).ok().and_then(|number| u64::try_from(number).ok());
            let date = |field| tombstone.get_datetime(field).ok().and_then(instant);
            Ok(Self {
                erased: date("erased").or_else(|| date("since")).unwrap_or(Instant::MIN),
                first_page: number("firstPage")
                    .and_then(|page| PageNumber::new(page).ok())
                    .unwrap_or(PageNumber::FIRST),
                second: number("second").unwrap_or(0),
            })
        };
        Ok(of.find(command, read).await?.pop())
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

/// Writes a line about the tombstone of an owner, if it has one.
///
/// # Errors
/// The database does not answer in time. No line is written.
pub(crate) async fn log(of: OfOwner<'_>) -> Result<()> {
    if let Some(erasure) = LoggedErasure::read(of).await? {
        erasure.write(of, false);
    }
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

/// What a line says of itself.
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

impl ErasureLine {
    /// The target of the lines in a log.
    pub const TARGET: &str = TARGET;

    /// Reads a line of a log. `None` if it is about something else.
    ///
    /// # Errors
    /// The line names an erasure, and cannot be read.
    pub fn parse(line: &str) -> Result<Option<Self>, Invalid> {
        let damaged = |why: String| Invalid(format!("is damaged: {why}"));
        if ![ERASED, REOPENED].iter().any(|event| line.contains(event)) {
            return Ok(None);
        }
        let members = if line.trim_start().starts_with('{') { of_json(line)? } else { of_pretty(line)? };
        let Some(members) = members else { return Ok(None) };
        let LoggedFields { event, owners, owner, history, first_page, second, erased } =
            serde_json::from_value(members.into()).map_err(|error| damaged(error.to_string()))?;
        let erased = Instant::parse_rfc3339(&erased).map_err(|rule| damaged(format!("`erased` {rule}")))?;
        // After it there must be one for a page.
        let first_page = PageNumber::new(first_page).ok().filter(|page| page.get() < TOMBSTONE as u64);
        let first_page =
            first_page.ok_or_else(|| damaged("`first_page` must be the number of a page".to_owned()))?;
        if second > BucketId::LAST_SECOND {
            return Err(damaged("`second` must have at most ten digits".to_owned()));
        }
        let erasure = LoggedErasure { erased, first_page, second };
        Ok(Some(Self { owners, owner, history, erasure, reopened: event == REOPENED }))
    }
}

type LineMembers = serde_json::Map<String, Value>;

/// The members of a line in JSON; `None` if it is another one of ours.
fn of_json(line: &str) -> Result<Option<LineMembers>, Invalid> {
    let members: LineMembers =
        serde_json::from_str(line).map_err(|_| Invalid::new("names an erasure, but is not a JSON object"))?;
    match members.get("event").and_then(Value::as_str) {
        Some(ERASED | REOPENED) => Ok(Some(members)),
        // One that quotes the name, such as the path of a request.
        _ if members.contains_key("target") => Ok(None),
        _ => Err(Invalid::new("names an erasure, but not as its `event`")),
    }
}

/// The same of a line in the format for people: `… WARN pagebucket::audit::erasures: an owner is erased event="owner-erased" …`.
fn of_pretty(line: &str) -> Result<Option<LineMembers>, Invalid> {
    const LEVELS: [&str; 5] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"];
    let Some((_, line)) = line.trim_end().rsplit_once(&format!("{TARGET}: an owner is ")) else {
        let is_ours = line.split_whitespace().nth(1).is_some_and(|level| LEVELS.contains(&level));
        return if is_ours {
            Ok(None)
        } else {
            Err(Invalid::new("names an erasure, but is no line of the log"))
        };
    };
    // No value has a space.
    let members = line.split(' ').skip(1).map(|field| {
        let (name, value) = field.split_once('=')?;
        let text = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        let number = text.parse::<u64>().ok().filter(|_| ["first_page", "second"].contains(&name));
        Some((name.to_owned(), number.map_or_else(|| text.into(), Value::from)))
    });
    let members: Option<LineMembers> = members.collect();
    let members = members
        .filter(|members| matches!(members.get("event").and_then(Value::as_str), Some(ERASED | REOPENED)));
    members.map(Some).ok_or_else(|| Invalid::new("is damaged: its fields cannot be read"))
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
        assert_eq!(ErasureLine::parse(LINE), line);
        assert_eq!(ErasureLine::parse(PRETTY), line);
        assert_eq!(ErasureLine::parse(&format!("Nov 20 host pagebucket[1]: {PRETTY}\r")), line);
        // Without what the log adds.
        let bare = r#"{"event":"owner-reopened","owners":"rooms","owner":"kitchen","history":"notes","first_page":1,"second":0,
            "erased":"2026-11-20T12:00:00.000Z"}"#;
        assert!(ErasureLine::parse(bare).unwrap().unwrap().reopened);
    }

    #[test]
    fn other_lines_are_left_out() {
        for line in [
            "",
            "mongod listens",
            r#"{"message":"an owner is to be erased","owner":"7","target":"pagebucket::audit"}"#,
            r#"{"path":"/v1/owner-erased","event":"other","target":"pagebucket::http"}"#,
            r#"{"path":"/v1/owner-erased","target":"pagebucket::http"}"#,
            r#"2026-11-20T12:00:00.1Z  INFO request{id="7f"}: pagebucket::http: answered path="/v1/owner-erased""#,
        ] {
            assert_eq!(ErasureLine::parse(line), Ok(None), "{line}");
        }
    }

    #[test]
    fn a_line_of_an_erasure_is_never_left_out_silently() {
        let quoted = serde_json::to_string(LINE).unwrap();
        for (line, part) in [
            ("an owner is erased: owner-erased".to_owned(), "no line of the log"),
            // As a principal would have it written: what it quotes is escaped.
            (PRETTY.replace('"', "\\\""), "its fields cannot be read"),
            (PRETTY[..PRETTY.len() - 43].to_owned(), "its fields cannot be read"),
            (PRETTY[..PRETTY.len() - 32].to_owned(), "missing field `erased`"),
            (format!("{PRETTY} and more"), "its fields cannot be read"),
            (PRETTY.replace("=7 second", "=x second"), "invalid type"),
            (LINE[..LINE.len() - 9].to_owned(), "not a JSON object"),
            // As a container engine wraps it.
            (format!(r#"{{"log":{quoted},"stream":"stderr"}}"#), "not as its `event`"),
            (LINE.replace(r#""owner":"7","#, ""), "missing field `owner`"),
            (LINE.replace(":7,", ":0,"), "`first_page` must be"),
            (LINE.replace(":7,", ":9007199254740991,"), "`first_page` must be"),
            (LINE.replace("1698349623", "10000000000"), "`second` must"),
            (LINE.replace("20T12:00:00.000Z", "20"), "`erased` must be"),
        ] {
            let Invalid(sentence) = ErasureLine::parse(&line).unwrap_err();
            assert!(sentence.contains(part), "{line}: {sentence}");
        }
    }
}
