//! The filter of the log.

use pagebucket_model::domain::Invalid;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

const LEVELS: &str = "a level is trace, debug, info, warn, error or off";

/// Checks a filter. [`EnvFilter`] accepts a target without a level, such as `nonsense=` or the mistyped level
/// `inof`, which turns off the log of everything else: that is refused.
///
/// # Errors
/// The text is no filter.
pub(crate) fn log_filter(text: &str) -> Result<String, Invalid> {
    EnvFilter::try_new(text).map_err(|error| Invalid(format!("{error}; {LEVELS}")))?;
    // A filter by fields of spans, such as `[request{id=1}]=debug`, may have commas of its own.
    let directives = text.split(',').map(str::trim).filter(|_| !text.contains('['));
    for directive in directives.filter(|directive| !directive.is_empty()) {
        let (target, level) = directive.rsplit_once('=').unwrap_or(("pagebucket", directive));
        if target.is_empty() || level.is_empty() || level.parse::<LevelFilter>().is_err() {
            return Err(Invalid(format!(
                "`{directive}` must be a level, or a target with its level, such as pagebucket=debug; {LEVELS}"
            )));
        }
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_level() {
        for text in [
            "",
            "info",
            "WARN",
            "off",
            "info,pagebucket_engine=debug",
            "hyper=warn, info",
            "[request{id=1}]=debug",
        ] {
            assert_eq!(log_filter(text).as_deref(), Ok(text));
        }
        for text in [
            "nonsense=",
            "nonsense",
            "inof",
            "=info",
            "info,pagebucket=",
            "pagebucket=loud",
            "info,,pagebucket",
        ] {
            let Invalid(sentence) = log_filter(text).unwrap_err();
            assert!(sentence.contains("a level is trace, debug,"), "{text}: {sentence}");
        }
    }
}
