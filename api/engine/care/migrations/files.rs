//! The numbered migrations, embedded in the binary.

use mongodb::bson::Document;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::error::MigrationError;

/// The files, in the order of their numbers. A test compares this list with the directory.
const FILES: [(&str, &str); 13] = [
    ("0001_trades", include_str!("numbered/0001_trades.json")),
    ("0002_idempotency_keys", include_str!("numbered/0002_idempotency_keys.json")),
    ("0003_epoch", include_str!("numbered/0003_epoch.json")),
    ("0004_dates", include_str!("numbered/0004_dates.json")),
    ("0005_page_views", include_str!("numbered/0005_page_views.json")),
    ("0006_found_keys", include_str!("numbered/0006_found_keys.json")),
    ("0007_histories", include_str!("numbered/0007_histories.json")),
    ("0008_api_keys", include_str!("numbered/0008_api_keys.json")),
    ("0009_markers", include_str!("numbered/0009_markers.json")),
    ("0010_summary_tiles", include_str!("numbered/0010_summary_tiles.json")),
    ("0011_kept_summaries", include_str!("numbered/0011_kept_summaries.json")),
    ("0012_dates_of_validators", include_str!("numbered/0012_dates_of_validators.json")),
    ("0013_inserted_pages", include_str!("numbered/0013_inserted_pages.json")),
];

/// A parsed file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migration {
    /// The first four digits of the file's name.
    #[serde(skip)]
    pub number: i32,
    /// The file's name without `.json`.
    #[serde(skip)]
    pub name: &'static str,
    /// SHA-256 of the file's text, in hexadecimal digits.
    #[serde(skip)]
    pub checksum: String,
    /// Why the migration is needed.
    pub why: String,
    /// Whether a version without this migration may use the migrated database.
    pub compatible: bool,
    /// The commands to run, in order.
    pub commands: Vec<MigrationCommand>,
}

/// A command of a migration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigrationCommand {
    /// For readers of the file only.
    #[serde(rename = "why")]
    _why: String,
    /// The command.
    pub run: Document,
}

impl Migration {
    /// Parses the text of a file, MongoDB Extended JSON.
    pub fn parse(name: &'static str, text: &str) -> Result<Self, MigrationError> {
        let malformed = |detail: String| MigrationError::Malformed { name: name.to_owned(), detail };
        let number = name.split_once('_').filter(|(digits, _)| digits.len() == 4);
        let number = number.and_then(|(digits, _)| digits.parse().ok());
        let file: Self = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        let number =
            number.ok_or_else(|| malformed("its name does not begin with four digits and _".to_owned()))?;
        Ok(Self { number, name, checksum: format!("{:x}", Sha256::digest(text)), ..file })
    }
}

/// The migrations in this binary.
pub(crate) fn embedded() -> Result<Vec<Migration>, MigrationError> {
    FILES.iter().map(|(name, text)| Migration::parse(name, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_embedded_whole_and_in_order() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/care/migrations/numbered");
        let mut names: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let embedded = embedded().unwrap();
        let expected: Vec<_> = embedded.iter().map(|migration| format!("{}.json", migration.name)).collect();
        assert_eq!(names, expected);
        for (index, migration) in embedded.iter().enumerate() {
            assert_eq!(migration.number, index as i32 + 1, "{}", migration.name);
            assert!(!migration.commands.is_empty());
        }
    }
}
