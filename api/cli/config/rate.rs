//! Flags of rate limits and of trusted proxies.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;
use pagebucket_model::domain::Invalid;
use pagebucket_service::{ForwardedHeader, Rate};

use super::choice::forwarded_header;
use super::heading;

/// How much each client may ask for.
#[derive(Args, Debug, Clone)]
pub struct RateArgs {
    /// Units of work that each client may ask for: `100/s`, `600/m`, `5000/h`.
    ///
    /// The time is a second, a minute or an hour. Appends, reads, and uploads and exports are counted
    /// apart. Further requests get 429. A client is an authenticated one, otherwise an address. Without it
    /// there is no limit.
    #[arg(long, help_heading = heading::RATES, env = "PAGEBUCKET_RATE_LIMIT", value_name = "UNITS/TIME", value_parser = rate)]
    pub rate_limit: Option<Rate>,

    /// Units that a client may ask for at once, after a pause.
    ///
    /// Without it: what --rate-limit allows in 10 s.
    #[arg(long, help_heading = heading::RATES, env = "PAGEBUCKET_RATE_BURST", value_name = "UNITS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate_burst: Option<u32>,

    /// Networks of trusted proxies, comma-separated.
    ///
    /// Such as `10.0.0.0/8,2001:db8::/48`. Their header --forwarded-header says which client's address
    /// counts, for --rate-limit and for the share of one client in --max-requests and the like.
    #[arg(long, help_heading = heading::RATES, env = "PAGEBUCKET_TRUSTED_PROXIES", value_name = "NETWORKS", value_delimiter = ',', value_parser = network)]
    pub trusted_proxies: Vec<IpNet>,

    /// The header in which --trusted-proxies write addresses of clients.
    ///
    /// The other one is not read: a proxy that does not write it passes on what the client sent.
    #[arg(
        long,
        help_heading = heading::RATES,
        env = "PAGEBUCKET_FORWARDED_HEADER",
        value_name = "HEADER",
        default_value = "x-forwarded-for",
        value_parser = forwarded_header()
    )]
    pub forwarded_header: ForwardedHeader,
}

/// `100/s`, `100/m` or `100/h`.
fn rate(text: &str) -> Result<Rate, Invalid> {
    let parse = || {
        let (units, per) = text.trim().split_once('/')?;
        let per = Duration::from_secs(match per {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        });
        let units = units.parse().ok().filter(|units: &NonZeroU32| units.get() <= 1_000_000)?;
        Some(Rate { units, per, burst: None })
    };
    parse()
        .ok_or_else(|| Invalid::new("must be 1 to 1000000 units in a time, such as 100/s, 600/m or 5000/h"))
}

/// A network: an address and the length of its prefix in bits, or an address alone. One of IPv4 that is
/// written in IPv6 becomes what it is, because clients are compared by their addresses of IPv4.
fn network(text: &str) -> Result<IpNet, Invalid> {
    let text = text.trim();
    let parse = || match text.split_once('/') {
        Some((address, bits)) => IpNet::new(address.parse().ok()?, bits.parse().ok()?).ok(),
        None => text.parse::<IpAddr>().ok().map(IpNet::from),
    };
    let canonical = |network: IpNet| {
        let bits = network.prefix_len().checked_sub(96).filter(|_| network.addr().is_ipv6());
        match (network.addr().to_canonical(), bits) {
            (address @ IpAddr::V4(_), Some(bits)) => IpNet::new(address, bits).unwrap_or(network),
            _ => network,
        }
    };
    parse()
        .map(canonical)
        .ok_or_else(|| Invalid::new("must be a network such as 10.0.0.0/8 or 2001:db8::/48, or an address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_units_in_a_time() {
        let parsed = |text| rate(text).map(|rate| (rate.units.get(), rate.per.as_secs())).ok();
        for (text, expected) in [
            ("100/s", Some((100, 1))),
            (" 1/m ", Some((1, 60))),
            ("1000000/h", Some((1_000_000, 3600))),
            ("1000001/h", None),
            ("0/s", None),
            ("-1/s", None),
            ("1.5/s", None),
            ("100", None),
            ("100/d", None),
            ("/s", None),
            ("", None),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn networks_are_networks() {
        for (text, address, bits) in [
            ("10.0.0.0/8", "10.0.0.0", 8),
            (" 192.0.2.1 ", "192.0.2.1", 32),
            ("0.0.0.0/0", "0.0.0.0", 0),
            ("2001:DB8::/48", "2001:db8::", 48),
            ("::1", "::1", 128),
            ("::ffff:10.0.0.0/104", "10.0.0.0", 8),
            ("::ffff:192.0.2.1", "192.0.2.1", 32),
            ("::ffff:0:0/96", "0.0.0.0", 0),
            ("::ffff:0:0/80", "::ffff:0:0", 80),
        ] {
            let expected = IpNet::new(address.parse().unwrap(), bits).unwrap();
            assert_eq!(network(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "proxy.example",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "010.0.0.0/8",
            "[::1]",
        ] {
            assert!(network(text).is_err(), "{text}");
        }
    }
}
