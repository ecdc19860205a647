//! The address of a server.

use std::net::{Ipv4Addr, SocketAddr};

use pagebucket_model::domain::Invalid;

const RULE: &str = "must be an address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080, or a port alone, such as \
                    8080, which is one of 127.0.0.1";

/// Parses an address and a port, or a port of 127.0.0.1.
///
/// # Errors
/// The text is neither.
pub fn listen_address(text: &str) -> Result<SocketAddr, Invalid> {
    let text = text.trim();
    let is_port = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|_| is_port).map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    port.or_else(|| text.parse().ok()).ok_or_else(|| Invalid::new(RULE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        for (text, address) in [
            ("8080", "127.0.0.1:8080"),
            (" 0 ", "127.0.0.1:0"),
            ("0.0.0.0:8080", "0.0.0.0:8080"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(listen_address(text), Ok(address.parse().unwrap()), "{text}");
        }
        for text in [
            "",
            ":8080",
            "+8080",
            "65536",
            "localhost",
            "localhost:8080",
            "127.0.0.1",
            "127.0.0.1:65536",
            "::1:80 x",
        ] {
            assert!(listen_address(text).unwrap_err().0.contains("such as 127.0.0.1:8080"), "{text}");
        }
    }
}
