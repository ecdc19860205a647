//! The version of a server, and what is known to be wrong with versions. The two tables here are the one
//! place to edit.
//!
//! Each range was looked up on 27 November 2026, in the source that is named beside it. That 8.0.20 and 8.2.7
//! have SERVER-121822 mended stands in no release notes and no advisory that was found: only MongoDB's issue
//! tracker names the affected versions, 8.0.19 and 8.2.6.

use std::fmt;

use mongodb::bson::Document;
use pagebucket_model::domain::Instant;

use super::emulation::recognise;

type Number = (u32, u32, u32);

/// The day after which MongoDB no longer supports a release, by its lifecycle schedules
/// (mongodb.com/legal/support-policy/lifecycles). 8.3 has "no sooner than October 2026" there; nothing was
/// found of 9.0.
const ENDS: &[((u32, u32), &str)] = &[
    ((6, 0), "2025-07-31"),
    ((6, 1), "2023-02-09"),
    ((6, 2), "2023-04-24"),
    ((6, 3), "2023-08-31"),
    ((7, 0), "2027-08-31"),
    ((7, 1), "2024-01-23"),
    ((7, 2), "2024-03-27"),
    ((7, 3), "2024-10-02"),
    ((8, 0), "2029-10-31"),
    ((8, 1), "2025-09-30"),
    ((8, 2), "2026-07-31"),
];

/// What is wrong with some versions, and concerns what this service does with a database.
struct Defect {
    /// From the first version on, before the second.
    versions: &'static [(Number, Number)],
    what: &'static str,
}

const DEFECTS: &[Defect] = &[
    // The issue has 8.0.19 and 8.2.6; the release notes of 8.3 have it among what 8.3.3 mends.
    // docs/architecture.md, "Reading", has how it is avoided.
    Defect {
        versions: &[((8, 0, 19), (8, 0, 20)), ((8, 2, 6), (8, 2, 7)), ((8, 3, 0), (8, 3, 3))],
        what: "it may answer with the excluded bound of a range of _id in a clustered collection (SERVER-121822): \
               pagebucket asks for no such range, other programs may",
    },
    // A critical advisory in the release notes of 8.3, with these versions. The issue names 7.0, 8.0
    // and 9.0 for backports, too; which of their versions are wrong was not found.
    Defect {
        versions: &[((8, 3, 0), (8, 3, 13))],
        what: "on a sharded cluster, a collection that is renamed into another database may be lost \
               (SERVER-131805): pagebucket renames none, other programs may",
    },
    // The record of the CVE in the national vulnerability database of the USA has these versions.
    Defect {
        versions: &[
            ((7, 0, 0), (7, 0, 35)),
            ((8, 0, 0), (8, 0, 24)),
            ((8, 2, 0), (8, 2, 10)),
            ((8, 3, 0), (8, 3, 3)),
        ],
        what: "anybody who reaches its port can end it (CVE-2026-9740)",
    },
    // The record of the CVE has these versions. (SERVER-130926)
    Defect {
        versions: &[((7, 0, 0), (7, 0, 41)), ((8, 0, 0), (8, 0, 30)), ((8, 3, 0), (8, 3, 9))],
        what: "a user who may write can end it by a document that a validator refuses (CVE-2026-82058)",
    },
    // The advisory AV26-468 of the Canadian Centre for Cyber Security has these versions. (SERVER-126021)
    Defect {
        versions: &[
            ((6, 0, 0), (6, 0, 28)),
            ((7, 0, 0), (7, 0, 34)),
            ((8, 0, 0), (8, 0, 23)),
            ((8, 2, 0), (8, 2, 9)),
            ((8, 3, 0), (8, 3, 2)),
        ],
        what: "a user who may write to a time-series collection can write outside of its memory (CVE-2026-8053)",
    },
];

/// The version that a server says it has, and what it is if it is not MongoDB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerVersion {
    name: String,
    number: Number,
    emulation: Option<&'static str>,
}

impl ServerVersion {
    /// By the answers of `hello` and `buildInfo`, and the hosts of the connection string.
    pub(crate) fn of(hello: &Document, build: &Document, hosts: &str) -> Self {
        let version = Self::parse(build.get_str("version").unwrap_or("unknown"));
        Self { emulation: recognise(hello, build, hosts), ..version }
    }

    /// A part that is no number is 0.
    fn parse(name: &str) -> Self {
        let mut parts = name.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
        let mut part = || parts.next().unwrap_or(0);
        Self { name: name.to_owned(), number: (part(), part(), part()), emulation: None }
    }

    /// The release that it is a version of, such as 7.0.
    pub(crate) fn release(&self) -> (u32, u32) {
        (self.number.0, self.number.1)
    }

    /// What is known to be wrong with it at this time, and that it lacks `missing` features: a sentence for
    /// each. What is wrong with a version of MongoDB says nothing about an emulation of it.
    pub fn warnings(&self, now: Instant, missing: &[&str]) -> Vec<String> {
        let lacks = (!missing.is_empty()).then(|| missing.join("; and no "));
        if let Some(name) = self.emulation {
            let lacks = lacks.map(|what| format!("; it has no {what}")).unwrap_or_default();
            return vec![format!(
                "the server is {name}, which is not MongoDB, and pagebucket is not tested on it{lacks}"
            )];
        }
        let lacks = lacks.map(|what| format!("the server has no {what}"));
        let (major, minor) = self.release();
        let today = &now.rfc3339()[..10];
        let end = ENDS.iter().find(|(release, end)| *release == (major, minor) && end.as_bytes() < today);
        let ended = end.map(|(_, end)| {
            format!(
                "MongoDB no longer supports {major}.{minor}: its support ended on {end}; upgrade the server"
            )
        });
        let known = DEFECTS.iter().filter(|defect| {
            defect.versions.iter().any(|(first, mended)| (*first..*mended).contains(&self.number))
        });
        let known = known.map(|defect| format!("MongoDB {}: {}; upgrade the server", self.name, defect.what));
        ended.into_iter().chain(known).chain(lacks).collect()
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.emulation {
            Some(name) => write!(formatter, "{} of MongoDB, emulated by {name}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The issues that are named of a version on this day, or "end".
    fn warned(version: &str, day: &str) -> Vec<&'static str> {
        let now = Instant::parse_rfc3339(&format!("{day}T12:00:00Z")).expect("a day");
        let warnings = ServerVersion::parse(version).warnings(now, &[]);
        let issues = [
            "no longer supports",
            "SERVER-121822",
            "SERVER-131805",
            "CVE-2026-9740",
            "CVE-2026-82058",
            "CVE-2026-8053",
        ];
        let named = issues.into_iter().filter(|issue| warnings.iter().any(|warning| warning.contains(issue)));
        let named: Vec<_> = named.collect();
        assert_eq!(named.len(), warnings.len(), "{warnings:?}");
        named
    }

    #[test]
    fn a_version_is_warned_of_from_the_first_that_is_wrong_to_the_last() {
        let (ended, memory) = ("no longer supports", "CVE-2026-8053");
        let (anybody, validator) = ("CVE-2026-9740", "CVE-2026-82058");
        for (version, expected) in [
            ("6.0.27", &[ended, memory][..]),
            ("6.0.28", &[ended]),
            ("7.0.28", &[anybody, validator, memory]),
            ("7.0.33", &[anybody, validator, memory]),
            ("7.0.34", &[anybody, validator]),
            ("7.0.35", &[validator]),
            ("7.0.40", &[validator]),
            ("7.0.41", &[]),
            ("8.0.18", &[anybody, validator, memory]),
            ("8.0.19", &["SERVER-121822", anybody, validator, memory]),
            ("8.0.22", &[anybody, validator, memory]),
            ("8.0.23", &[anybody, validator]),
            ("8.0.29", &[validator]),
            ("8.0.30-rc0", &[]),
            ("8.2.5", &[ended, anybody, memory]),
            ("8.2.6", &[ended, "SERVER-121822", anybody, memory]),
            ("8.2.8", &[ended, anybody, memory]),
            ("8.2.9", &[ended, anybody]),
            ("8.2.10", &[ended]),
            ("8.3.1", &["SERVER-121822", "SERVER-131805", anybody, validator, memory]),
            ("8.3.2", &["SERVER-121822", "SERVER-131805", anybody, validator]),
            ("8.3.8", &["SERVER-131805", validator]),
            ("8.3.12", &["SERVER-131805"]),
            ("8.3.13", &[]),
            ("9.0.0", &[]),
            ("unknown", &[]),
        ] {
            assert_eq!(warned(version, "2026-11-27"), expected, "{version}");
        }
    }

    #[test]
    fn support_ends_after_its_last_day() {
        assert!(warned("7.0.41", "2027-08-31").is_empty());
        assert_eq!(warned("7.0.41", "2027-09-01"), ["no longer supports"]);
    }
    #[test]
    fn what_a_server_lacks_is_one_sentence() {
        let now = Instant::parse_rfc3339("2026-11-27T12:00:00Z").expect("a day");
        let build = mongodb::bson::doc! { "version": "6.0.27", "ferretdb": {} };
        let emulation = ServerVersion::of(&Document::new(), &build, "127.0.0.1:27017");
        assert_eq!(emulation.to_string(), "6.0.27 of MongoDB, emulated by FerretDB");
        let sentence = "the server is FerretDB, which is not MongoDB, and pagebucket is not tested on it";
        assert_eq!(emulation.warnings(now, &[]), [sentence]);
        let both = ["streams: polls", "validators: none"];
        let lacks = "no streams: polls; and no validators: none";
        assert_eq!(emulation.warnings(now, &both), [format!("{sentence}; it has {lacks}")]);
        let server = ServerVersion::parse("8.3.13");
        assert_eq!(server.warnings(now, &both), [format!("the server has {lacks}")]);
    }
}
