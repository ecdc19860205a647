//! Views of web pages, and how clients send them.

use pagebucket_model::domain::{DraftError, Faults, Instant, Invalid, Json, many, one_or_many};
use serde_json::value::RawValue;

use crate::page_path::PagePath;
use crate::resolution::{Minute, Resolution};

/// Views of one page at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageView {
    /// The page.
    pub path: PagePath,
    /// The moment of the views.
    pub at: Instant,
    /// The number of views, 1 to [`PageView::MOST_VIEWS`].
    pub views: u32,
}

impl PageView {
    /// The most views in one `PageView`.
    pub const MOST_VIEWS: u32 = 1_000_000;

    /// How far ahead of the server's clock a view may be, in milliseconds. A client's clock may be wrong, or
    /// set to another time zone.
    pub const MOST_AHEAD: i64 = Resolution::Day.millis();
}

/// A page and an hour whose buckets are to be created before they are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preallocation {
    /// The page.
    pub path: PagePath,
    /// The first minute of the hour.
    pub hour: Minute,
}

impl Preallocation {
    /// How far ahead an hour may begin, in days.
    pub const MOST_DAYS_AHEAD: i64 = 366;

    /// The first minute of the hour of UTC that begins at `begins`. `now` is the current time.
    ///
    /// # Errors
    /// `begins` is not a whole hour, or is too far ahead.
    pub fn hour(begins: Instant, now: Instant) -> Result<Minute, Invalid> {
        if begins.millis() % Resolution::Hour.millis() != 0 {
            return Err(Invalid::new("must be on a whole hour of UTC"));
        }
        if begins.millis() - now.millis() > Self::MOST_DAYS_AHEAD * Resolution::Day.millis() {
            return Err(Invalid::new(format!("must be at most {} days ahead", Self::MOST_DAYS_AHEAD)));
        }
        Ok(Minute::of(begins))
    }
}

const PAGE_VIEW: ObjectForm = ObjectForm { noun: "page view", fields: &["path", "at", "views"], required: 1 };

const PREALLOCATION: ObjectForm =
    ObjectForm { noun: "preallocation", fields: &["path", "hour"], required: 2 };

/// A kind of object.
struct ObjectForm {
    /// The name of the kind.
    noun: &'static str,
    /// The names of the fields, the required ones first.
    fields: &'static [&'static str],
    /// How many fields are required.
    required: usize,
}

/// The longest unknown name, in bytes, that is repeated to the client.
const LONGEST_NAME_REPEATED: usize = 64;

impl ObjectForm {
    /// Reads the object at `pointer`. Passes each field with its value to `field`, which checks it. Adds all
    /// faults to `faults`; any other value than an object is one. Returns `None` if there are any.
    fn read(
        &self,
        raw: &RawValue,
        pointer: &str,
        faults: &mut Faults,
        mut field: impl FnMut(&str, Json<'_>) -> Result<(), Invalid>,
    ) -> Option<()> {
        let members = match Json::read(raw) {
            Json::Object(members) => members,
            other => {
                let detail = format!("must be a {}, which is an object, not {}", self.noun, other.kind());
                faults.push(|| pointer.to_owned(), detail);
                return None;
            }
        };
        let before = faults.count();
        let mut seen = Vec::new();
        for member in &members {
            let Some(name) = member.name.as_deref() else {
                faults.push(|| pointer.to_owned(), "has a field whose name is not Unicode text");
                continue;
            };
            let at = || format!("{pointer}/{name}");
            if seen.contains(&name) {
                faults.push(at, "must not be given more than once");
            } else if self.fields.contains(&name) {
                seen.push(name);
                if let Err(Invalid(detail)) = field(name, Json::read(member.value)) {
                    faults.push(at, detail);
                }
            } else if name.len() > LONGEST_NAME_REPEATED {
                let detail = format!("has an unknown field, with a name of {} bytes", name.len());
                faults.push(|| pointer.to_owned(), detail);
            } else {
                // RFC 6901, section 3: "~" before "/", or the escape would be escaped.
                let escaped = name.replace('~', "~0").replace('/', "~1");
                faults.push(|| format!("{pointer}/{escaped}"), format!("is not a field of a {}", self.noun));
            }
        }
        for field in self.fields[..self.required].iter().filter(|field| !seen.contains(field)) {
            faults.push(|| format!("{pointer}/{field}"), "is required");
        }
        (faults.count() == before).then_some(())
    }
}

/// The text of a JSON string, which must be Unicode.
fn text(value: Json<'_>) -> Result<String, Invalid> {
    match value {
        Json::String(Some(text)) => Ok(text.into_owned()),
        Json::String(None) => Err(Invalid::new("must be Unicode text, without a lone surrogate")),
        other => Err(Invalid::new(format!("must be a string, not {}", other.kind()))),
    }
}

/// One page view, with an article, and many.
const NOUNS: [&str; 3] = ["page view", "a page view", "page views"];

/// Parses a JSON text that is one page view or an array of 1 to `max` page views, and finds all its faults. A
/// page view without a moment gets `now`.
///
/// # Errors
/// See [`DraftError`].
pub fn parse_views(bytes: &[u8], max: usize, now: Instant) -> Result<Vec<PageView>, DraftError> {
    one_or_many(bytes, max, NOUNS, |view, pointer, faults| parse_view(view, pointer, now, faults))
}

/// The same of an array alone.
///
/// # Errors
/// See [`DraftError`].
pub fn parse_view_batch(bytes: &[u8], max: usize, now: Instant) -> Result<Vec<PageView>, DraftError> {
    many(bytes, max, NOUNS, |view, pointer, faults| parse_view(view, pointer, now, faults))
}

/// Parses a text with one page view in each line, at least one, and finds all its faults. Blank lines are
/// skipped.
///
/// # Errors
/// All faults, including lines that are not JSON.
pub fn parse_views_by_line(bytes: &[u8], now: Instant) -> Result<Vec<PageView>, Faults> {
    let (mut views, mut faults) = (Vec::new(), Faults::default());
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        faults.in_line(index as u64 + 1);
        match Json::check(line) {
            Ok(raw) => views.extend(parse_view(raw, "", now, &mut faults)),
            Err(error) => faults.push(String::new, format!("is not JSON: {}", error.in_one_line())),
        }
    }
    if views.is_empty() && faults.is_empty() {
        faults.push(String::new, "must have at least one page view");
    }
    if faults.is_empty() { Ok(views) } else { Err(faults) }
}

/// Parses a JSON text that is one preallocation, and finds all its faults.
///
/// # Errors
/// See [`DraftError`].
pub fn parse_preallocation(bytes: &[u8], now: Instant) -> Result<Preallocation, DraftError> {
    let raw = Json::check(bytes)?;
    let mut faults = Faults::default();
    let (mut path, mut hour) = (None, None);
    PREALLOCATION.read(raw, "", &mut faults, |name, value| {
        match name {
            "path" => path = Some(PagePath::parse(&text(value)?)?),
            _ => hour = Some(Preallocation::hour(Instant::parse_rfc3339(&text(value)?)?, now)?),
        }
        Ok(())
    });
    let parsed = path.zip(hour).map(|(path, hour)| Preallocation { path, hour });
    parsed.filter(|_| faults.is_empty()).ok_or(DraftError::Invalid(faults))
}

fn parse_view(raw: &RawValue, pointer: &str, now: Instant, faults: &mut Faults) -> Option<PageView> {
    let (mut path, mut at, mut views) = (None, now, 1);
    PAGE_VIEW.read(raw, pointer, faults, |name, value| {
        match name {
            "path" => path = Some(PagePath::parse(&text(value)?)?),
            "at" => {
                at = Instant::parse_rfc3339(&text(value)?)?;
                if at.millis() - now.millis() > PageView::MOST_AHEAD {
                    return Err(Invalid::new("must be at most 24 hours ahead of the server's clock"));
                }
            }
            _ => views = parse_count(&value)?,
        }
        Ok(())
    })?;
    Some(PageView { path: path?, at, views })
}

fn parse_count(value: &Json<'_>) -> Result<u32, Invalid> {
    let Json::Number(text) = value else {
        return Err(Invalid::new(format!("must be a number, not {}", value.kind())));
    };
    let number = text.parse().ok();
    number.filter(|number| (1..=PageView::MOST_VIEWS).contains(number)).ok_or_else(|| {
        let most = PageView::MOST_VIEWS;
        Invalid::new(format!(
            "must be a whole number from 1 to {most}, written without a fraction or an exponent"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        Instant::parse_rfc3339(text).unwrap()
    }

    fn now() -> Instant {
        at("2014-01-01T10:01:02.003Z")
    }

    fn places(faults: &Faults) -> Vec<(Option<u64>, &str)> {
        faults.kept().iter().map(|fault| (fault.line, fault.pointer.as_str())).collect()
    }

    fn pointers(text: &str) -> Vec<String> {
        match parse_views(text.as_bytes(), 1000, now()) {
            Err(DraftError::Invalid(faults)) => {
                faults.kept().iter().map(|fault| fault.pointer.clone()).collect()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn one_view_or_many() {
        let views = parse_views(br#"{"path":"/"}"#, 1000, now()).unwrap();
        assert_eq!(views, [PageView { path: PagePath::parse("/").unwrap(), at: now(), views: 1 }]);
        let many = r#"[{"path":"/a","views":1000000},{"path":"/b","at":"2014-01-02T10:01:02.003Z"},{"path":"/c","at":"0000-01-01T00:00:00Z"}]"#;
        let views = parse_views(many.as_bytes(), 1000, now()).unwrap();
        assert_eq!(views.iter().map(|view| view.views).collect::<Vec<_>>(), [1_000_000, 1, 1]);
        assert_eq!(views[2].at, Instant::MIN);
    }

    #[test]
    fn all_the_faults_of_views_are_reported() {
        let found = pointers(
            r#"[{"path":"a","at":"2014-01-02T10:01:02.004Z","views":0},{},7,{"path":"/","page":1,"views":1000001},
                {"path":"/","at":"2016-12-31T23:59:60Z"},{"path":"/","path":"/"},{"path":"/","views":1.0},{"path":"/\ud800"}]"#,
        );
        assert_eq!(
            found,
            [
                "/0/path", "/0/at", "/0/views", "/1/path", "/2", "/3/page", "/3/views", "/4/at", "/5/path",
                "/6/views", "/7/path"
            ]
        );
        for text in ["[]", "null", "\"/\""] {
            assert_eq!(pointers(text), [""], "{text}");
        }
        assert!(matches!(parse_views(b"{", 1000, now()), Err(DraftError::NotJson(_))));
    }

    #[test]
    fn faults_of_lines_say_which() {
        let views =
            parse_views_by_line(b"{\"path\":\"/\"}\r\n\n {\"path\":\"/\",\"views\":2}", now()).unwrap();
        assert_eq!(views.iter().map(|view| view.views).sum::<u32>(), 3);
        let faults =
            parse_views_by_line(b"{\"path\":\"/\"}\n\n{\"path\":\"x\",\"views\":0}\n{\n[]\n\xff", now())
                .unwrap_err();
        assert_eq!(
            places(&faults),
            [(Some(3), "/path"), (Some(3), "/views"), (Some(4), ""), (Some(5), ""), (Some(6), "")]
        );
        assert!(faults.kept()[2].rule.to_string().ends_with(", at byte 1"), "{faults:?}");
        assert_eq!(places(&parse_views_by_line(b" \n\n", now()).unwrap_err()), [(None, "")]);
    }

    #[test]
    fn a_preallocation_is_of_a_whole_hour() {
        let parse = |text: &str| parse_preallocation(text.as_bytes(), now());
        let whole = parse(r#"{"path":"/a","hour":"2014-01-01T12:00:00+01:00"}"#).unwrap();
        assert_eq!(whole.hour.start(), at("2014-01-01T11:00:00Z"));
        assert!(parse(r#"{"path":"/a","hour":"2015-01-02T10:00:00Z"}"#).is_ok());
        for (text, expected) in [
            ("{}", vec!["/path", "/hour"]),
            ("[]", vec![""]),
            (r#"{"path":"/a","hour":"2015-01-02T11:00:00Z"}"#, vec!["/hour"]),
            (r#"{"path":"/a","hour":"2014-01-01T12:00:00+00:30"}"#, vec!["/hour"]),
            (r#"{"path":"a","hour":"2014-01-01T12:00:00.001Z","hours":2}"#, vec!["/path", "/hour", "/hours"]),
        ] {
            let Err(DraftError::Invalid(faults)) = parse(text) else { panic!("{text}") };
            assert_eq!(
                places(&faults),
                expected.iter().map(|pointer| (None, *pointer)).collect::<Vec<_>>(),
                "{text}"
            );
        }
    }
}
