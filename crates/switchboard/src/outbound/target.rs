//! What a URL must look like before it is stored or dialled. Only its text is judged: where a name leads is known no
//! sooner than it is resolved, so `localhost` passes here and is stopped by the connector.
//!
//! Two readers of one URL must not come to two hosts. Whatever is read differently by different parsers is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;
use http::uri::Scheme;

const URL_BYTES_MAX: usize = 8_192;
/// The longest name DNS can carry, in its text form.
const NAME_BYTES_MAX: usize = 253;

/// Reads an absolute http or https URL. The text of an error may be shown to whoever sent the URL.
pub(crate) fn check_url(url: &str) -> Result<Uri, String> {
    if url.len() > URL_BYTES_MAX {
        return Err(format!("URL has {} bytes, expected at most {URL_BYTES_MAX}", url.len()));
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("URL must be printable ASCII without spaces; encode the path with % and the host with xn--".into());
    }
    if url.contains('\\') {
        return Err("URL must not contain a backslash".into());
    }
    if url.contains('#') {
        return Err("URL must not have a fragment: it would never be sent".into());
    }
    let uri: Uri = url.parse().map_err(|_| "URL cannot be read; expected https://host[:port]/path".to_owned())?;
    host_and_port(&uri)?;
    Ok(uri)
}

/// The host as the resolver wants it, without the brackets of an IPv6 address, and the port to dial.
pub(super) fn host_and_port(uri: &Uri) -> Result<(&str, u16), String> {
    let scheme_port = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => 443,
        Some(scheme) if *scheme == Scheme::HTTP => 80,
        Some(_) | None => return Err("URL must begin with http:// or https://".into()),
    };
    let Some(authority) = uri.authority() else { return Err("URL has no host".into()) };
    if authority.as_str().contains('@') {
        return Err("URL must not contain a user name or password".into());
    }
    let host = authority.host();
    let port = match authority.as_str().strip_prefix(host) {
        Some("") => scheme_port,
        // Read from the text: a port that is out of range looks like no port at all to `Uri`.
        Some(rest) => rest
            .strip_prefix(':')
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|digits| digits.parse().ok())
            .filter(|port| *port != 0)
            .ok_or("port of the URL must be a number from 1 to 65535")?,
        None => return Err("URL has no host".into()),
    };
    Ok((bare_host(host)?, port))
}

/// The address a host is written as, if it is no name.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    host.parse().ok()
}

fn bare_host(host: &str) -> Result<&str, String> {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return match inner.parse::<Ipv6Addr>() {
            Ok(_) => Ok(inner),
            Err(_) => Err("host of the URL is not an IPv6 address; expected one like [2001:db8::1]".into()),
        };
    }
    if host.parse::<Ipv4Addr>().is_ok() || is_host_name(host) {
        return Ok(host);
    }
    Err("host of the URL is neither a host name nor an address like 192.0.2.1 or [2001:db8::1]".into())
}

/// Whether the text can be a host name. Underscores pass, because container networks use them. What the system's
/// resolver takes for an IPv4 address in an old spelling (`127.1`, `0x7f000001`, `2130706433`) does not: those read
/// differently elsewhere.
pub(super) fn is_host_name(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let plain = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let numeric = |label: &str| {
        let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
        label.bytes().all(|byte| byte.is_ascii_digit())
            || hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    name.len() <= NAME_BYTES_MAX && name.split('.').all(plain) && !name.rsplit('.').next().is_some_and(numeric)
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
