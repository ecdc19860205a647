//! What is generated from the flags and the metrics: pages of `docs/reference`, manual pages, completions of
//! shells.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clap::{Arg, Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use pagebucket_model::domain::Invalid;
use pagebucket_model::metric::{ALL, Label, Metric};

use crate::config::heading;

/// A page of `docs/reference`.
#[derive(ValueEnum, Debug, Clone, Copy)]
pub(crate) enum ReferencePage {
    /// Every flag of every command.
    Settings,
    /// Every metric.
    Metrics,
}

/// The text of a page.
pub(crate) fn page(program: Command, page: ReferencePage) -> String {
    match page {
        ReferencePage::Settings => settings(program),
        ReferencePage::Metrics => metrics(),
    }
}

/// What completes commands and flags.
pub(crate) fn completions(mut program: Command, shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut program, "pagebucket", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The manual page of the program, or of the command that these words name.
///
/// # Errors
/// There is no such command.
pub(crate) fn manual(mut program: Command, words: &[String]) -> Result<String, Invalid> {
    program.build();
    let command = words.iter().try_fold(&program, |command, word| command.find_subcommand(word));
    let command = command.ok_or_else(|| Invalid(format!("there is no command {}", words.join(" "))))?;
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text).map_err(|error| Invalid(error.to_string()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

const SETTINGS: &str = "\
# Settings

Every flag of every command, with its variable of the environment and its default; `--help` of a command says more of each. A flag counts
before the variable, and the variable before the file of `serve --config`. That file is TOML: its keys are the names of the flags of `serve`
without dashes. `serve --print-config` prints such a file with what is in force, except connection strings.

Times and sizes may have a unit: `30s`, `5m`, `24h`, `7d`; `1KiB`, `64MiB`, `2GiB`. A variable that begins with `PAGEBUCKET_` and sets nothing
is named by a warning at the start, with the nearest name that there is.

This page is generated from the program: `make reference`.
";

/// What says more of the flags with a heading.
const MORE: [(&str, &str); 8] = [
    (
        heading::HISTORIES,
        "[retention](../how-to/retire-and-erase.md#retention), [histories](../how-to/own-history.md)",
    ),
    (heading::DATABASE, "[MongoDB](../how-to/mongodb.md)"),
    (heading::MONGOD, "[the private mongod](../how-to/mongodb.md#the-private-mongod)"),
    (
        heading::ADDRESS,
        "[hosts and proxies](../how-to/deploy.md#hosts-and-proxies), [TLS](../how-to/deploy.md#tls-and-http2)",
    ),
    (heading::LIMITS, "[limits](limits.md)"),
    (
        heading::TIMES,
        "[limits of connections](limits.md#limits-of-connections), [stopping](../how-to/deploy.md#stopping)",
    ),
    (heading::RATES, "[rate limits](limits.md#rate-limits), [behind a proxy](limits.md#behind-a-proxy)"),
    (heading::AUTHENTICATION, "[authentication](../how-to/authenticate.md)"),
];

fn settings(mut program: Command) -> String {
    program.build();
    let mut page = SETTINGS.to_owned();
    for command in program.get_subcommands() {
        describe(command, &mut page);
    }
    page
}

/// Adds the flags of a command, and those of the commands below it. A flag with a heading is one of `serve`,
/// where it is described.
fn describe(command: &Command, page: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    page.push_str(&format!("\n## {name}\n\n{about}.\n"));
    let mut shared = Vec::new();
    let mut groups: BTreeMap<usize, (&str, Vec<&Arg>)> = BTreeMap::new();
    let arguments = || command.get_arguments().filter(|arg| arg.get_id() != "help" && !arg.is_hide_set());
    let headings: Vec<_> = arguments().map(|arg| arg.get_help_heading().unwrap_or_default()).collect();
    for (arg, heading) in arguments().zip(&headings) {
        if !heading.is_empty() && command.get_name() != "serve" {
            shared.push(format!("`{}`", flag(arg)));
        } else {
            let first = headings.iter().position(|other| other == heading).unwrap_or_default();
            groups.entry(first).or_insert((heading, Vec::new())).1.push(arg);
        }
    }
    for (heading, flags) in groups.into_values() {
        if !heading.is_empty() {
            page.push_str(&format!("\n### {heading}\n"));
            let more = MORE.iter().find(|(of, _)| *of == heading);
            page.extend(more.map(|(_, links)| format!("\nMore: {links}.\n")));
        }
        page.push_str("\n| Flag | Environment | Default | Meaning |\n|---|---|---|---|\n");
        flags.into_iter().for_each(|arg| page.push_str(&row(arg)));
    }
    if !shared.is_empty() {
        page.push_str(&format!("\nFlags as those of `serve`: {}.\n", shared.join(", ")));
    }
    command.get_subcommands().for_each(|command| describe(command, page));
}

/// `--listen`, or the name of what is given without a flag.
fn flag(arg: &Arg) -> String {
    let name = || format!("<{}>", arg.get_id().as_str().to_uppercase());
    arg.get_long().map_or_else(name, |long| format!("--{long}"))
}

fn row(arg: &Arg) -> String {
    let takes_value = arg.get_action().takes_values() && !arg.is_positional();
    let values = arg.get_value_names().filter(|_| takes_value).unwrap_or_default();
    let values: String = values.iter().map(|value| format!(" {value}")).collect();
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let variable = arg.get_env().map(OsStr::to_string_lossy).unwrap_or_default();
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = if takes_value { defaults.join(",") } else { String::new() };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let words: Vec<_> = arg.get_possible_values().iter().map(|word| code(word.get_name())).collect();
    let words =
        if takes_value && !words.is_empty() { format!(": {}", words.join(", ")) } else { String::new() };
    let cells = [code(&(flag(arg) + &values)), code(&variable), code(&default), help + &words];
    let cell = |cell: String| if cell.is_empty() { cell } else { " ".to_owned() + &cell.replace('|', "\\|") };
    format!("|{} |\n", cells.map(cell).join(" |"))
}

const METRICS: &str = "\
# Metrics

`GET /metrics` answers in Prometheus' text format. Names follow its conventions: base units, `_total` for counters.

A series whose labels are known is there from the start, at 0, so that `rate` and `increase` see its first event. Unknown are names of
clients, and the statuses of routes except 500 and 503.

This page is generated from the program: `make reference`.

| Name | Kind | Labels | Meaning |
|---|---|---|---|
";

const PROCESS: &str = "
Of the process itself there are the metrics that Prometheus' client libraries have: `process_cpu_seconds_total`, `process_open_fds`,
`process_max_fds`, `process_resident_memory_bytes`, `process_virtual_memory_bytes`, `process_virtual_memory_max_bytes`,
`process_start_time_seconds` and `process_threads`.

[deploy/](../../deploy/README.md) has alerts that use them, what to do about each, and a dashboard.
";

fn metrics() -> String {
    let label = |label: &Label| format!("`{}`", label.name);
    let metric = |Metric { name, kind, labels, help }: &Metric| {
        let labels: Vec<_> = labels.iter().map(label).collect();
        let kind = format!("{kind:?}").to_lowercase();
        format!("| `{name}` | {kind} | {} | {help} |\n", labels.join(", ")).replace("|  |", "| |")
    };
    let metrics: String = ALL.iter().map(metric).collect();
    [METRICS, &metrics, PROCESS].concat()
}
