//! `keys`: makes, lists and revokes API keys.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pagebucket_engine::internal::COMMAND;
use pagebucket_engine::internal::api_keys::{CreateError, KeyRecord, Revocation};
use pagebucket_engine::{Deadline, Error};
use pagebucket_http::auth::keys::{ApiKey, MOST_OWNERS, check_owner};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::{AllowedOwners, Clock, Instant, Invalid, Scope};

use super::database::{self, Opened, Unready};
use super::exit::{Failure, Signals};
use super::terminal::{print, print_error, write};
use crate::config::DatabaseArgs;

/// Flags of `keys`.
#[derive(Args, Debug)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Subcommand, Debug)]
enum KeysCommand {
    /// Create a key, and print it once. The database keeps only its SHA-256.
    Create(CreateArgs),
    /// List all keys: what they may do, when they were used, and until when they are valid.
    List(ListArgs),
    /// Revoke a key. Every server refuses it within 60 s.
    Revoke(RevokeArgs),
}

#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
struct CreateArgs {
    /// Name of the key: 1 to 64 of A-Z, a-z, 0-9, "-", "_" and ".".
    ///
    /// Names are never reused. Log lines name a client by it.
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    name: String,

    /// What clients with the key may do, comma-separated.
    ///
    /// read, append, list, views, metrics, admin.
    #[arg(long, value_name = "SCOPES", required = true, value_delimiter = ',', value_parser = Scope::parse)]
    scope: Vec<Scope>,

    /// Whose histories they may use: ids, comma-separated, such as 7,8.
    ///
    /// 7 is owner 7 of every collection; customers=7 that of one collection; * is every id. Without it:
    /// those of every owner.
    #[arg(long, visible_alias = "customers", value_name = "OWNERS", value_delimiter = ',')]
    owners: Vec<String>,

    /// Number of days after which the key is refused.
    ///
    /// Without it and --expires: never.
    #[arg(long, value_name = "DAYS", conflicts_with = "expires", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    expires_in: Option<u32>,

    /// From when the key is refused: RFC 3339, such as 2027-01-31T00:00:00Z.
    #[arg(long, value_name = "DATE", value_parser = Instant::parse_rfc3339)]
    expires: Option<Instant>,

    #[command(flatten)]
    database: DatabaseArgs,
}

const AFTER_HELP: &str = "\
The key is the only line on standard output: KEY=$(pagebucket keys create …).

Exit status: 0 the key exists, 2 usage or the name is taken, 3 the database, 130 interrupted.";

#[derive(Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Args, Debug)]
struct RevokeArgs {
    /// Name of the key.
    name: String,

    #[command(flatten)]
    database: DatabaseArgs,
}

pub(crate) async fn run(args: KeysArgs) -> Result<ExitCode, Failure> {
    match args.command {
        KeysCommand::Create(args) => {
            let definitions = database::definitions(&args.database.histories)?;
            let record = args.record(&definitions, Clock::system().now())?;
            let work =
                async |opened: &Opened, mut signals: Signals| signals.unless(create(opened, &record)).await;
            database::creating(&args.database, Unready::Refuse, work).await?;
        }
        KeysCommand::List(args) => database::interruptible(&args.database, list).await?,
        KeysCommand::Revoke(args) => {
            database::interruptible(&args.database, async |opened| revoke(opened, &args.name).await).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_name(text: &str) -> Result<String, Invalid> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !(1..=64).contains(&text.len()) || !text.bytes().all(allowed) {
        return Err(Invalid::new("must be 1 to 64 of the characters A-Z, a-z, 0-9, \"-\", \"_\" and \".\""));
    }
    Ok(text.to_owned())
}

impl CreateArgs {
    /// The record of the new key.
    ///
    /// # Errors
    /// A flag has a value that makes no sense.
    fn record(&self, definitions: &Definitions, now: Instant) -> Result<KeyRecord, Failure> {
        let wrong = |flag: &str, rule: &str| Failure::Usage(format!("{flag} {rule}"));
        let owners: BTreeSet<&String> = self.owners.iter().collect();
        for entry in &owners {
            let checked = check_owner(entry, definitions);
            checked.map_err(|Invalid(rule)| wrong(&format!("--owners {entry}:"), &rule))?;
        }
        if owners.len() > MOST_OWNERS {
            return Err(wrong("--owners", &format!("must name at most {MOST_OWNERS} owners")));
        }
        let in_days = |days: u32| {
            let expires = Instant::from_millis(now.millis() + i64::from(days) * DAY);
            expires.map_err(|Invalid(rule)| wrong("--expires-in", &rule))
        };
        let expires = self.expires_in.map(in_days).transpose()?.or(self.expires);
        if expires.is_some_and(|expires| expires <= now) {
            return Err(wrong("--expires", "must be in the future"));
        }
        Ok(KeyRecord {
            name: self.name.clone(),
            scopes: self.scope.iter().copied().collect(),
            owners: (!owners.is_empty()).then(|| owners.into_iter().cloned().collect()),
            created: now,
            last_used: None,
            expires,
            revoked: None,
        })
    }
}

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

async fn create(opened: &Opened, record: &KeyRecord) -> Result<(), Failure> {
    opened.prepare(false).await?;
    let (key, name) = (ApiKey::new(), &record.name);
    let created = opened.store.api_keys().create(key.hash(), record, Deadline::within(COMMAND)).await;
    created.map_err(|error| match error {
        CreateError::NameTaken => Failure::Usage(format!(
            "--name {name}: a key has this name, or had it before it was revoked; choose another name"
        )),
        CreateError::Database(error) => Failure::Database(error.to_string()),
    })?;
    write(&format!("{}\n", key.expose()))?;
    print_error(format_args!("the key {name} is shown this once: keep it where its client reads it"));
    Ok(())
}

async fn revoke(opened: &Opened, name: &str) -> Result<(), Failure> {
    let now = Clock::system().now();
    let revoked = opened.store.api_keys().revoke(name, now, Deadline::within(COMMAND)).await;
    let revoked = revoked.map_err(|error| Failure::Database(format!("{error}; run the command again")))?;
    match revoked {
        Revocation::Revoked => print(format_args!("revoked {name}: every server refuses it within 60 s")),
        Revocation::AlreadyRevoked => print(format_args!("{name} was revoked before")),
        Revocation::UnknownName => return Err(Failure::Usage(format!("no key has the name {name}"))),
    }
    Ok(())
}

/// Prints a table with a line for each key.
async fn list(opened: &Opened) -> Result<(), Failure> {
    let records = opened.store.api_keys().all(Deadline::within(COMMAND)).await;
    let records = records.map_err(|error: Error| Failure::Database(error.to_string()))?;
    if records.is_empty() {
        print(format_args!("the database has no keys"));
        return Ok(());
    }
    let now = Clock::system().now();
    let head = ["NAME", "STATE", "SCOPES", "OWNERS", "CREATED", "LAST USED", "EXPIRES"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(records.iter().map(|record| row(record, now))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths: [usize; 7] = std::array::from_fn(width);
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        print(format_args!("{}", cells.collect::<Vec<_>>().join("  ").trim_end()));
    }
    Ok(())
}

fn row(record: &KeyRecord, now: Instant) -> [String; 7] {
    let KeyRecord { name, scopes, owners, created, last_used, expires, revoked } = record;
    let state = match (revoked, expires) {
        (Some(at), _) => format!("revoked {}", minute(*at)),
        (None, Some(expires)) if *expires <= now => "expired".to_owned(),
        (None, _) => "valid".to_owned(),
    };
    let scopes: Vec<_> = scopes.iter().map(|scope| scope.to_string()).collect();
    [
        name.clone(),
        state,
        scopes.join(","),
        owners.as_ref().map_or(AllowedOwners::EVERY.to_owned(), |owners| owners.join(",")),
        minute(*created),
        last_used.map_or("never".to_owned(), minute),
        expires.map_or("never".to_owned(), minute),
    ]
}

/// A date in UTC, without its seconds: `2004-01-09T00:00Z`.
fn minute(at: Instant) -> String {
    let text = at.to_string();
    format!("{}Z", &text[.."2004-01-09T00:00".len()])
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Create {
        #[command(flatten)]
        create: CreateArgs,
    }

    const NOW: &str = "2026-11-22T16:00:30Z";

    fn record(flags: &[&str]) -> Result<KeyRecord, String> {
        let args = ["create"].iter().chain(flags);
        let parsed = Create::try_parse_from(args).map_err(|error| error.to_string())?;
        let now = Instant::parse_rfc3339(NOW).unwrap();
        parsed.create.record(&Definitions::built_in(), now).map_err(Failure::sentence)
    }

    #[test]
    fn usage_is_checked_without_a_database() {
        let found = record(&["--name", "back.end_1-a", "--scope", "read,append"]).unwrap();
        assert_eq!((found.name.as_str(), found.owners, found.expires), ("back.end_1-a", None, None));
        assert_eq!(found.scopes.iter().collect::<Vec<_>>(), [Scope::Read, Scope::Append]);
        let flags = ["--name", "a", "--scope", "read", "--customers", "8,customers=7,8", "--expires-in", "1"];
        let found = record(&flags).unwrap();
        assert_eq!(found.owners, Some(vec!["8".to_owned(), "customers=7".to_owned()]));
        assert_eq!(found.expires.unwrap().to_string(), "2026-11-23T16:00:30.000Z");
        let long = "x".repeat(65);
        let many: Vec<_> = (1..=1001).map(|id| id.to_string()).collect();
        for (flags, part) in [
            (&["--scope", "read"][..], "--name"),
            (&["--name", "a"], "--scope"),
            (&["--name", "a", "--scope", ""], "must be one of read"),
            (&["--name", "a", "--scope", "read,write"], "must be one of read"),
            (&["--name", "", "--scope", "read"], "must be 1 to 64"),
            (&["--name", &long, "--scope", "read"], "must be 1 to 64"),
            (&["--name", "a b", "--scope", "read"], "must be 1 to 64"),
            (&["--name", "a", "--scope", "read", "--owners", ""], "--owners : must be"),
            (&["--name", "a", "--scope", "read", "--owners", "7,x"], "--owners x: must be"),
            (&["--name", "a", "--scope", "read", "--owners", "rooms=7"], "must name a collection"),
            (&["--name", "a", "--scope", "read", "--owners", &many.join(",")], "at most 1000"),
            (&["--name", "a", "--scope", "read", "--expires-in", "0"], "0 is not in 1..=36500"),
            (&["--name", "a", "--scope", "read", "--expires", "2027-01-31"], "RFC 3339"),
            (&["--name", "a", "--scope", "read", "--expires", NOW], "must be in the future"),
            (
                &["--name", "a", "--scope", "read", "--expires-in", "1", "--expires", "2027-01-31T00:00:00Z"],
                "cannot be used with",
            ),
        ] {
            let sentence = record(flags).err().unwrap_or_default();
            assert!(sentence.contains(part), "{flags:?}: {sentence}");
        }
    }

    #[test]
    fn a_row_says_what_a_key_may() {
        let at = |text| Instant::parse_rfc3339(text).unwrap();
        let now = at(NOW);
        let mut known = record(&["--name", "a", "--scope", "list,read"]).unwrap();
        assert_eq!(row(&known, now), ["a", "valid", "read,list", "*", "2026-11-22T16:00Z", "never", "never"]);
        known.owners = Some(vec!["7".to_owned(), "8".to_owned()]);
        (known.last_used, known.expires) = (Some(at("2026-11-22T15:00:00Z")), Some(now));
        let row_of = |known: &KeyRecord| row(known, now)[1..].join(" ");
        assert_eq!(
            row_of(&known),
            "expired read,list 7,8 2026-11-22T16:00Z 2026-11-22T15:00Z 2026-11-22T16:00Z"
        );
        known.revoked = Some(now);
        assert!(row_of(&known).starts_with("revoked 2026-11-22T16:00Z "));
    }
}
