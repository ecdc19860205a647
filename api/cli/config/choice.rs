//! Flags that take one of some words, for types of crates that do not know clap.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pagebucket_model::domain::ReadPreference;
use pagebucket_service::ForwardedHeader;
use pagebucket_streams::format::Format;

/// Which member serves reads.
pub fn read_preference() -> impl TypedValueParser<Value = ReadPreference> {
    one_of([
        ("primary", "The primary alone", ReadPreference::Primary),
        (
            "secondaryPreferred",
            "A secondary if there is one, else the primary",
            ReadPreference::SecondaryPreferred,
        ),
        ("nearest", "The member with the lowest network latency", ReadPreference::Nearest),
    ])
}

/// A header with the addresses of clients of proxies.
pub(super) fn forwarded_header() -> impl TypedValueParser<Value = ForwardedHeader> {
    one_of([
        (
            "x-forwarded-for",
            "`X-Forwarded-For`, which nearly all proxies write",
            ForwardedHeader::XForwardedFor,
        ),
        ("forwarded", "`Forwarded` (RFC 7239)", ForwardedHeader::Forwarded),
    ])
}

/// Format of a file of items.
pub fn format() -> impl TypedValueParser<Value = Format> {
    one_of([
        ("csv", "Comma-separated values with a header row (RFC 4180)", Format::Csv),
        ("ndjson", "One JSON object per line", Format::Ndjson),
    ])
}

/// A word, what it means, and what it stands for.
type Choice<T> = (&'static str, &'static str, T);

fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    choices: [Choice<T>; N],
) -> impl TypedValueParser<Value = T> {
    let words = choices.map(|(word, meaning, _)| PossibleValue::new(word).help(meaning));
    PossibleValuesParser::new(words).try_map(move |given| {
        let choice = choices.iter().find(|(word, ..)| *word == given);
        choice.map(|(.., value)| *value).ok_or("not one of the words")
    })
}
