//! What of a connection string may be shown. It may hold a password, and one that is not escaped as it
//! should be can stand anywhere in it.

/// Options whose values are secrets, in lower case.
const SECRET_OPTIONS: [&str; 2] = ["password", "authmechanismproperties"];

pub(super) fn has_scheme(uri: &str) -> bool {
    uri.starts_with("mongodb://") || uri.starts_with("mongodb+srv://")
}

/// Whether anything in it must not be quoted, so that neither must a message that may quote it.
pub(super) fn may_hold_a_secret(uri: &str) -> bool {
    let Some((_, rest)) = uri.split_once("://") else { return true };
    let options = rest.to_ascii_lowercase();
    rest.contains('@')
        || SECRET_OPTIONS.iter().any(|option| options.contains(option))
        || !hosts(rest).split(',').all(is_host)
}

/// The hosts alone, and not even these where they cannot be told from a secret.
pub(super) fn shown(uri: &str) -> String {
    let (scheme, rest) = uri.split_once("://").unwrap_or_default();
    let scheme = if scheme == "mongodb+srv" { scheme } else { "mongodb" };
    // The last "@": a password with an unescaped one must not show its tail.
    let (secret, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
    let hosts = hosts(rest);
    let can_be_told = !secret.contains('?') && hosts.split(',').all(is_host);
    format!("{scheme}://{}", if can_be_told { hosts } else { "..." })
}

fn hosts(rest: &str) -> &str {
    rest.split(['/', '?']).next().unwrap_or_default()
}

/// Whether what follows the colon is a port, rather than the password of a string without a host.
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
