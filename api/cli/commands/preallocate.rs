//! `preallocate`: prepares the counters of page views.

use std::process::ExitCode;

use clap::Args;
use pagebucket_engine::Deadline;
use pagebucket_engine::internal::COMMAND;
use pagebucket_model::domain::{Clock, Instant, Invalid};
use pagebucket_page_views::{PagePath, PageViews, Preallocated, Preallocation};

use super::database::{self, Opened, Unready};
use super::exit::{Failure, Signals};
use super::terminal::print;
use crate::config::DatabaseArgs;

/// Flags of `preallocate`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PreallocateArgs {
    /// Path of a page, such as /index.htm. May be given more than once.
    #[arg(long, value_name = "PATH", required = true, value_parser = PagePath::parse)]
    path: Vec<PagePath>,

    /// Start of the first hour, such as 2014-01-01T10:00:00Z.
    ///
    /// RFC 3339, a whole hour of UTC.
    #[arg(long, value_name = "DATE", value_parser = Instant::parse_rfc3339)]
    hour: Instant,

    /// Number of hours.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8_784))]
    hours: u32,

    #[command(flatten)]
    database: DatabaseArgs,
}

const AFTER_HELP: &str = "\
Creates a counter with 0 views for each minute of the hours, so that counting need not create it. Existing counters stay \
as they are: the command may be run again, and while views are counted.

Exit status: 0 all counters exist, 2 usage, 3 the database, 130 interrupted.";

pub(crate) async fn run(args: PreallocateArgs) -> Result<ExitCode, Failure> {
    let wanted = args.wanted(Clock::system().now())?;
    let work = async |opened: &Opened, mut signals: Signals| {
        let mut done = Preallocated::default();
        let ended = signals.unless(preallocate(opened, &wanted, &mut done)).await;
        let Preallocated { created, existing } = done;
        print(format_args!("created {created} minutes; {existing} existed already"));
        ended.map(|()| ExitCode::SUCCESS)
    };
    database::creating(&args.database, Unready::Refuse, work).await
}

impl PreallocateArgs {
    /// Each hour of each page, hour by hour.
    ///
    /// # Errors
    /// An hour is not one, or is too far ahead.
    fn wanted(&self, now: Instant) -> Result<Vec<Preallocation>, Failure> {
        let rule = |Invalid(rule)| Failure::Usage(format!("--hour {rule}"));
        let mut wanted = Vec::with_capacity(self.hours as usize * self.path.len());
        let first = Preallocation::hour(self.hour, now).map_err(rule)?;
        for number in 0..self.hours {
            let begins = first.plus(number * 60).map_err(rule)?;
            let hour = Preallocation::hour(begins.start(), now)
                .map_err(|Invalid(rule)| Failure::Usage(format!("--hours: each {rule}")))?;
            wanted.extend(self.path.iter().map(|path| Preallocation { path: path.clone(), hour }));
        }
        Ok(wanted)
    }
}

async fn preallocate(
    opened: &Opened,
    wanted: &[Preallocation],
    done: &mut Preallocated,
) -> Result<(), Failure> {
    opened.prepare(false).await?;
    let views = PageViews::of(&opened.store);
    for wanted in wanted {
        let made = views.preallocate(wanted, Deadline::within(COMMAND)).await;
        let made = made.map_err(|cause| {
            let (path, hour) = (&wanted.path, wanted.hour.start());
            Failure::Database(format!("{path}, {hour}: {cause}; run the command again to create the rest"))
        })?;
        done.created += made.created;
        done.existing += made.existing;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct PreallocateCli {
        #[command(flatten)]
        preallocate: PreallocateArgs,
    }

    fn wanted(flags: &[&str]) -> Result<Vec<Preallocation>, String> {
        let args = ["preallocate"].iter().chain(flags);
        let parsed = PreallocateCli::try_parse_from(args).map_err(|error| error.to_string())?;
        let now = Instant::parse_rfc3339("2014-01-01T10:01:02Z").unwrap();
        parsed.preallocate.wanted(now).map_err(Failure::sentence)
    }

    #[test]
    fn usage_is_checked_without_a_database() {
        let hour = "2014-01-01T10:00:00Z";
        let day = wanted(&["--path", "/a", "--path", "/b", "--hour", hour, "--hours", "24"]).unwrap();
        assert_eq!(day.len(), 48);
        assert_eq!(
            (day[47].path.as_str(), day[47].hour.start().to_string().as_str()),
            ("/b", "2014-01-02T09:00:00.000Z")
        );
        assert_eq!(wanted(&["--path", "/a", "--hour", "0000-01-01T00:00:00Z"]).unwrap().len(), 1);
        for (flags, part) in [
            (&["--hour", hour][..], "--path"),
            (&["--path", "/a"], "--hour"),
            (&["--path", "a", "--hour", hour], "must begin with"),
            (&["--path", "/a", "--hour", "2014-01-01T10:30:00Z"], "--hour must be on a whole hour"),
            (&["--path", "/a", "--hour", "2014-01-01"], "RFC 3339"),
            (&["--path", "/a", "--hour", "2016-01-01T10:00:00Z"], "--hour must be at most 366 days ahead"),
            (&["--path", "/a", "--hour", hour, "--hours", "0"], "0 is not in 1..=8784"),
            (
                &["--path", "/a", "--hour", "2014-12-31T10:00:00Z", "--hours", "100"],
                "--hours: each must be at most 366",
            ),
        ] {
            let sentence = wanted(flags).err().unwrap_or_default();
            assert!(sentence.contains(part), "{flags:?}: {sentence}");
        }
    }
}
