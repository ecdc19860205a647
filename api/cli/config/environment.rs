//! Variables of the environment that look like ours, and set nothing.

use std::collections::BTreeSet;

use clap::Command;

const PREFIX: &str = "PAGEBUCKET_";

/// What is wrong with the names of these variables: a sentence for each that no flag of the program reads.
pub(crate) fn unknown(program: &Command, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = BTreeSet::new();
    add(program, &mut known);
    let unknown =
        names.filter(|name| name.starts_with(PREFIX) && !known.contains(name) && !is_of_kubernetes(name));
    let sentence = |name: String| {
        let nearest = known.iter().min_by_key(|known| strsim::levenshtein(known, &name));
        let nearest = nearest.map_or_else(String::new, |nearest| format!("; the nearest name is {nearest}"));
        format!("{name} sets nothing{nearest}")
    };
    unknown.map(sentence).collect()
}

/// Adds the variables of all flags of a command, and of the commands below it.
fn add(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(|flag| flag.get_env()?.to_str());
    known.extend(variables.filter(|name| name.starts_with(PREFIX)).map(str::to_owned));
    command.get_subcommands().for_each(|command| add(command, known));
}

/// Whether Kubernetes sets it in every container beside a service with our name.
fn is_of_kubernetes(name: &str) -> bool {
    let rest = &name[PREFIX.len()..];
    rest == "PORT" || ["PORT_", "SERVICE_"].iter().any(|beginning| rest.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn misspelt_variables_are_named() {
        let flag = |variable: &'static str| Arg::new(variable).env(variable);
        let serve = Command::new("serve").arg(flag("PAGEBUCKET_RATE_LIMIT")).arg(flag("MONGODB_URI"));
        let program = Command::new("program").arg(flag("PAGEBUCKET_DATA_DIR")).subcommand(serve);
        let names = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
            unknown(&program, names.into_iter())
        };
        let good = ["PAGEBUCKET_RATE_LIMIT", "PAGEBUCKET_DATA_DIR", "MONGODB_URI", "PATH", "PAGEBUCKET"];
        assert_eq!(names(&good), [""; 0]);
        assert_eq!(
            names(&["PAGEBUCKET_PORT_8080_TCP", "PAGEBUCKET_SERVICE_HOST", "PAGEBUCKET_PORT"]),
            [""; 0]
        );
        assert_eq!(
            names(&["PAGEBUCKET_RATE_LIMITS", "PAGEBUCKET_DATADIR"]),
            [
                "PAGEBUCKET_RATE_LIMITS sets nothing; the nearest name is PAGEBUCKET_RATE_LIMIT",
                "PAGEBUCKET_DATADIR sets nothing; the nearest name is PAGEBUCKET_DATA_DIR",
            ]
        );
    }
}
