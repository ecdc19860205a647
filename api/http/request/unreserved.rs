//! Addresses that differ only in how they are written are one (RFC 3986, section 6.2.2.2).

use axum::http::Uri;
use axum::http::uri::PathAndQuery;

/// Decodes what need not be percent-encoded in the path of a request: `/v1/cust%6Fmers` is `/v1/customers`.
/// Before routing, which compares bytes.
pub(crate) fn decode_unreserved(address: &mut Uri) {
    let path = address.path();
    if !path.contains('%') {
        return;
    }
    let mut decoded = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        decoded.push_str(before);
        let encoded = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).map(char::from);
        let unreserved = encoded.filter(|char| char.is_ascii_alphanumeric() || "-._~".contains(*char));
        decoded.push(unreserved.unwrap_or('%'));
        rest = if unreserved.is_some() { &after[2..] } else { after };
    }
    decoded.push_str(rest);
    if let Some(query) = address.query() {
        decoded = format!("{decoded}?{query}");
    }
    let mut parts = address.clone().into_parts();
    let Ok(path) = PathAndQuery::try_from(decoded) else { return };
    parts.path_and_query = Some(path);
    if let Ok(decoded) = Uri::from_parts(parts) {
        *address = decoded;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_need_not_be_encoded_is_decoded() {
        for (written, read) in [
            ("/v1/cust%6Fmers/%37/trades?note=%6F", "/v1/customers/7/trades?note=%6F"),
            ("/v1/%7e%2D%5f%2E", "/v1/~-_."),
            ("/v1/a%2Fb%25%ff%6", "/v1/a%2Fb%25%ff%6"),
            ("/v1/%+6%ä", "/v1/%+6%ä"),
            ("http://a.example/%41", "http://a.example/A"),
        ] {
            let Ok(mut address) = written.parse() else { continue };
            decode_unreserved(&mut address);
            assert_eq!(address.to_string(), read);
        }
    }
}
