//! The address of a database, led over a link of ours.

/// The address over a link that is at another place, which need not be this machine, and is never encrypted.
pub(super) fn over(link: std::net::SocketAddr, [before, after]: [String; 2]) -> String {
    let first = if after.contains('?') { '&' } else { '?' };
    let plain = if after.contains("sslmode=") { String::new() } else { format!("{first}sslmode=disable") };
    format!("{before}{link}{after}{plain}")
}

/// Where an address of PostgreSQL leads, and the address with a place for another host and port, if a link can be put in between: a
/// single host on this machine, and nothing that names the host for TLS.
pub(super) fn divide(url: &str) -> Option<(String, [String; 2])> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (user, host));
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_near = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    if !is_near || tail.contains("sslmode=require") || tail.contains("host=") {
        return None;
    }
    let to = if host.contains("]:") || (!host.ends_with(']') && host.contains(':')) {
        host.to_owned()
    } else {
        format!("{host}:5432")
    };
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    Some((to, [format!("{scheme}://{user}"), tail.to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::{divide, over};

    #[test]
    fn an_address_of_this_machine_is_led_over_a_link() {
        let divided = |url| divide(url).map(|(to, [before, after])| format!("{to} {before}X{after}"));
        let expected = "127.0.0.1:5433 postgres://u:p@X/db?connect_timeout=3";
        assert_eq!(divided("postgres://u:p@127.0.0.1:5433/db?connect_timeout=3").as_deref(), Some(expected));
        let led = |url| divide(url).map(|(_, parts)| over(([198, 18, 0, 2], 99).into(), parts));
        assert_eq!(led("postgres://u@localhost/db").as_deref(), Some("postgres://u@198.18.0.2:99/db?sslmode=disable"));
        let led = led("postgres://localhost/db?connect_timeout=3&sslmode=prefer");
        assert_eq!(led.as_deref(), Some("postgres://198.18.0.2:99/db?connect_timeout=3&sslmode=prefer"));
        assert_eq!(divided("postgres://localhost").as_deref(), Some("localhost:5432 postgres://X"));
        for other in
            ["postgres://u@db.example/db", "postgres://u@localhost/db?sslmode=require", "postgres:///db?host=/run", "x"]
        {
            assert_eq!(divided(other), None, "{other}");
        }
    }
}
