//! The file of `serve --config`: settings in TOML, below flags and the environment.
//!
//! A key is the name of a flag without its dashes, and a value becomes the default of that flag. So the
//! structs of flags stay the one place of each setting: clap parses the text of a flag, of a variable and of
//! the file alike, and its own order decides which of them counts. Structs that derive `Deserialize` too
//! would need each range, unit and list once more, and a merge of three sources. A new flag is a key of the
//! file without a line here.

use std::fs;
use std::path::Path;

use clap::builder::Resettable;
use clap::{Arg, ArgMatches, Command};
use pagebucket_model::domain::Invalid;
use toml::{Table, Value};

/// Flags about the settings themselves.
const NO_SETTINGS: [&str; 4] = ["config", "print-config", "help", "version"];

/// The program, of which the flags of `serve` have the values in this file as defaults.
///
/// # Errors
/// A sentence with the file, and where there is one the key.
pub(crate) fn with_defaults(program: Command, file: &Path) -> Result<Command, Invalid> {
    let refuse = |why: String| Invalid(format!("{}: {why}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    // The whole error would show the line, which may have a password.
    let settings: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |at| 1 + text[..at.start].matches('\n').count());
        refuse(format!("line {line}: {}", error.message()))
    })?;
    settings.iter().try_fold(program, |program, (key, value)| {
        with_default(program, key, value).map_err(|Invalid(rule)| refuse(format!("{key}: {rule}")))
    })
}

fn with_default(program: Command, key: &str, value: &Value) -> Result<Command, Invalid> {
    let of_serve = program.find_subcommand("serve").into_iter().flat_map(Command::get_arguments);
    let settings: Vec<_> = of_serve.chain(program.get_arguments()).filter(|arg| is_setting(arg)).collect();
    let Some(&arg) = settings.iter().find(|arg| arg.get_long() == Some(key)) else {
        let names = settings.iter().filter_map(|arg| arg.get_long());
        let nearest = names.min_by_key(|name| strsim::levenshtein(name, key)).unwrap_or_default();
        return Err(Invalid(format!("there is no such setting; the nearest name is {nearest}")));
    };
    let takes_value = arg.get_action().takes_values();
    let texts = match value {
        Value::Boolean(is_on) if !takes_value => vec![is_on.to_string()],
        _ if !takes_value => return Err(Invalid::new("must be true or false")),
        Value::Array(values) if arg.get_value_delimiter().is_some() => {
            values.iter().map(text_of).collect::<Result<_, _>>()?
        }
        value => vec![text_of(value)?],
    };
    // By itself, so that a mistake is one of the file, also where a flag or a variable hides the value.
    let alone = Command::new("file").no_binary_name(true).arg(arg.clone().env(Resettable::Reset));
    let flags = texts.iter().filter(|_| takes_value).map(|text| format!("--{key}={text}"));
    alone.try_get_matches_from(flags).map_err(|error| {
        let text = error.to_string();
        let first: Vec<_> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
        Invalid(first.join(" ").trim_start_matches("error: ").to_owned())
    })?;
    let id = arg.get_id().clone();
    let set = |arg: Arg| if *arg.get_id() == id { arg.default_values(texts.clone()) } else { arg };
    Ok(program.mut_args(&set).mut_subcommand("serve", |serve| serve.mut_args(&set)))
}

fn is_setting(arg: &Arg) -> bool {
    arg.get_long().is_some_and(|name| !NO_SETTINGS.contains(&name))
}

/// As the text of a flag.
fn text_of(value: &Value) -> Result<String, Invalid> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        _ => Err(Invalid::new(
            "must be a text or a whole number, or a list where the flag takes several values",
        )),
    }
}

/// The settings in force, as a file of `--config`. Secrets are left out.
pub(crate) fn in_force(serve: &Command, given: &ArgMatches) -> String {
    let settings = serve.get_arguments().filter(|arg| is_setting(arg) && !arg.is_hide_env_values_set());
    let lines = settings.filter_map(|arg| Some(format!("{} = {}\n", arg.get_long()?, value_of(arg, given)?)));
    lines.collect()
}

fn value_of(arg: &Arg, given: &ArgMatches) -> Option<Value> {
    let id = arg.get_id().as_str();
    if !arg.get_action().takes_values() {
        return Some(Value::Boolean(given.get_flag(id)));
    }
    let mut texts = given.get_raw(id).into_iter().flatten().map(|text| text.to_string_lossy().into_owned());
    if arg.get_value_delimiter().is_some() {
        return Some(Value::Array(texts.map(Value::String).collect()));
    }
    let text = texts.next_back()?;
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    Some(number.map_or(Value::String(text), Value::Integer))
}
