//! Which part of a connection string may be shown. It may contain a password, and a password that is not
//! escaped correctly can stand anywhere in the string.

/// Options whose values are secrets, in lower case.
const SECRET_OPTIONS: [&str; 2] = ["password", "authmechanismproperties"];

pub(crate) fn has_scheme(uri: &str) -> bool {
    uri.starts_with("mongodb://") || uri.starts_with("mongodb+srv://")
}

/// Whether the string may contain a secret. A message that may quote the string must then not be shown
/// either.
pub(crate) fn may_hold_a_secret(uri: &str) -> bool {
    let Some((_, rest)) = uri.split_once("://") else { return true };
    let options = rest.to_ascii_lowercase();
    rest.contains('@')
        || SECRET_OPTIONS.iter().any(|option| options.contains(option))
        || !hosts(rest).split(',').all(is_host)
}

/// Only the hosts; `...` if they cannot be distinguished from a secret.
pub(crate) fn shown(uri: &str) -> String {
    let (scheme, rest) = uri.split_once("://").unwrap_or_default();
    let scheme = if scheme == "mongodb+srv" { scheme } else { "mongodb" };
    // The last "@": if a password contains an unescaped "@", the rest of the password must not be shown.
    let (secret, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
    let hosts = hosts(rest);
    let distinguishable = !secret.contains('?') && hosts.split(',').all(is_host);
    format!("{scheme}://{}", if distinguishable { hosts } else { "..." })
}

fn hosts(rest: &str) -> &str {
    rest.split(['/', '?']).next().unwrap_or_default()
}

/// Whether the text after the colon is a port, and not the password of a string without a host.
fn is_host(host: &str) -> bool {
    let port = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((_, "")) => return true,
        Some((_, port)) => port.strip_prefix(':').unwrap_or("none"),
        None => match host.split_once(':') {
            None => return true,
            Some((_, port)) => port,
        },
    };
    port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_shown_without_its_secrets() {
        for (uri, expected) in [
            ("mongodb://u:p@h1:1,h2:2/db?replicaSet=r&password=x", "mongodb://h1:1,h2:2"),
            ("mongodb+srv://u:p%40@h/", "mongodb+srv://h"),
            ("mongodb://u:p@ss@h", "mongodb://h"),
            ("mongodb://u:p/ss@h", "mongodb://h"),
            ("mongodb://localhost", "mongodb://localhost"),
            ("mongodb://[::1]:27017/", "mongodb://[::1]:27017"),
            ("mongodb://[::1]/", "mongodb://[::1]"),
            ("mongodb://u:p?ss@h", "mongodb://..."),
            ("mongodb://u:pass", "mongodb://..."),
            ("mongodb://u:123456", "mongodb://..."),
            ("mongodb://[u]pass", "mongodb://..."),
            ("mongodb://h/?authMechanismProperties=A:x@secret", "mongodb://..."),
            ("u:p@h", "mongodb://"),
            ("u:p://ss@h", "mongodb://h"),
        ] {
            assert_eq!(shown(uri), expected, "{uri}");
        }
    }

    #[test]
    fn only_what_holds_no_secret_is_quoted() {
        for uri in ["mongodb://h/?maxPoolSize=many", "mongodb://h1:1,[::1]:2/db?directConnection=x"] {
            assert!(has_scheme(uri) && !may_hold_a_secret(uri), "{uri}");
        }
        for uri in [
            "mongodb://u:p@h",
            "mongodb://u:pass",
            "mongodb://u:123456",
            "mongodb://h:70000",
            "mongodb://h/?tlsCertificateKeyFilePassword=x",
            "mongodb://h/?AUTHMECHANISMPROPERTIES=x",
            "u:pass",
        ] {
            assert!(may_hold_a_secret(uri), "{uri}");
        }
    }
}
