//! Which of the tests run: all, or the share that CI runs on another mongod than the others, of those that
//! are possible on this mongod.

use libtest_mimic::{Arguments, Trial};

use super::{leave_out, mongod};

/// The share of the suite that CI runs on a later mongod: by the beginnings of their names, tests of each
/// part that depends on what the server answers, on how it plans and on what it does when it fails.
const SHARE: &[&str] = &[
    "appends::",
    "commands::migrate",
    "cost::",
    "dates::a_span_is_half_open",
    "dates::any_window_of_any_span::trades",
    "dates::what_a_span_examines",
    "deleted::",
    "exactly_once::a_first_attempt_is_cut::trades",
    "exactly_once::a_primary_killed::trades",
    "exactly_once::everything_at_random::trades",
    "exactly_once::mongod_killed_under_load::trades",
    "live::a_quiet_stream_keeps_a_token_of_now",
    "live::a_stream_that_breaks_misses_nothing",
    "live::readers_lose_nothing_when_the_oplog_rolls",
    "live::readers_of_two_stores_get_all_in_order::trades",
    "live::who_has_something_new_is_told",
    "markers::erasure::nothing_is_left_but_the_tombstone",
    "markers::erasure::numbers_go_on_after_a_reopening",
    "markers::retirement::pages_go_by_their_dates",
    "markers::retirement::the_oldest_pages_go_and_the_others_stay",
    "page_views::counting::",
    "series::an_item_is_a_measurement",
    "series::erasures::",
    "series::faults::inserts_fail_in_every_way",
    "series::views::a_view_of_many_generations_joins_them",
    "summaries::kept::",
    "summaries::tiles_answer_what_pages_cannot",
    "upgrade::the_database_of_each_released_version_is_served",
];

/// What `make test-fast` runs, by the beginnings of names: how requests are answered. None of them needs a
/// container, a package of another language or a browser.
const HTTP: &[&str] = &[
    "api_keys::",
    "appends::",
    "bad_input::",
    "caching::",
    "catalog::",
    "customers::",
    "dates::",
    "expected_seq::",
    "filters::",
    "keys::",
    "layering::",
    "offsets::",
    "page_cache::",
    "service::",
    "snapshots::",
    "windows::",
];

/// What cannot be tested on a mongod that Wine runs, by the beginning of its name, and why.
const NOT_UNDER_WINE: &[(&str, &str)] = &[
    (
        "markers::stepped::",
        "nothing can be preloaded into a program for Windows, so its clock is the machine's",
    ),
    ("commands::killed_serve_starts_again", LEFT_BEHIND),
    ("embedded::names_a_frozen_mongod_left_behind", LEFT_BEHIND),
    ("embedded::replaces_a_mongod_left_behind", LEFT_BEHIND),
    (
        "embedded::tells_why_mongod_does_not_start",
        "a mongod for Windows that aborts has lines in its log that one for Linux does not have",
    ),
];

const LEFT_BEHIND: &str = "a mongod that is left behind is found by its lock, and one for Windows holds none that Linux \
                           knows";

/// Leaves the tests that run: with `TEST_SHARE=only` the share, with `TEST_SHARE=without` the others, with
/// `TEST_SHARE=http` those of answers, with `TEST_SHARE=appends::` those whose names begin so. What cannot
/// run on this mongod is named in the closing lines.
pub fn choose(trials: &mut Vec<Trial>, arguments: &Arguments) {
    if let Ok(share) = std::env::var("TEST_SHARE") {
        trials.retain(|trial| {
            let is_of = |share: &[&str]| share.iter().any(|begin| trial.name().starts_with(begin));
            match &*share {
                "only" => is_of(SHARE),
                "without" => !is_of(SHARE),
                "http" => is_of(HTTP),
                begin if begin.ends_with("::") => trial.name().starts_with(begin),
                _ => panic!("TEST_SHARE is only, without, http, or the beginning of names up to ::"),
            }
        });
    }
    if mongod::is_under_wine() {
        trials.retain(|trial| {
            let reason = NOT_UNDER_WINE.iter().find(|(begin, _)| trial.name().starts_with(begin));
            let reason = reason.filter(|_| !arguments.is_filtered_out(trial));
            reason.inspect(|(_, why)| leave_out(trial.name(), why)).is_none()
        });
    }
}
