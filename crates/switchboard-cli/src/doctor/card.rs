//! Whether there is a card, where, and whether the addresses in it make sense.

use std::net::IpAddr;

use http::Uri;
use switchboard_core::model::Timestamp;

use super::reach::is_private;
use super::{Finding, clock, fine, hint, wrong};
use crate::conformance;
use crate::conformance::card::{Card, Reference};
use crate::conformance::wire::http::Outgoing;
use crate::conformance::wire::{Raw, Wire, shown};

const NEW_PATH: &str = "/.well-known/agent-card.json";
const OLD_PATH: &str = "/.well-known/agent.json";
/// Where cards are found that are not where they belong.
const ELSEWHERE: [&str; 4] = ["/agent-card.json", "/agent.json", "/card", "/.well-known/agent-card"];

/// Looks at both well-known paths; none if there is no card to go on with.
pub(super) async fn find(
    wire: &Wire,
    reference: &Reference,
    now: Timestamp,
    findings: &mut Vec<Finding>,
) -> Option<Card> {
    if let Reference::Base(base) = reference {
        let newer = look(wire, &format!("{base}{NEW_PATH}")).await;
        let older = look(wire, &format!("{base}{OLD_PATH}")).await;
        if let Ok(raw) = newer.as_ref().or(older.as_ref()) {
            findings.push(clock::compare(&raw.headers, now));
        }
        let (newer, older) = (judged(newer), judged(older));
        match (&newer, &older) {
            (Ok(()), _) => findings.push(fine("card", format!("there is a card at {NEW_PATH}"))),
            (Err(_), Ok(())) => findings.push(hint(
                "card",
                format!("there is a card at {OLD_PATH} only, where versions before 0.3 have it"),
                format!("serve it at {NEW_PATH} as well, since newer clients look nowhere else"),
            )),
            (Err(why), Err(_)) => {
                findings.push(missing(wire, base, why).await);
                return None;
            }
        }
    }
    match Card::find(wire, reference).await {
        Ok(card) => Some(card),
        Err(why) => {
            let fix = "serve a JSON object there, as section 4.4.1 of the specification describes it";
            findings.push(wrong("card", format!("the card cannot be used: {why}"), fix));
            None
        }
    }
}

async fn look(wire: &Wire, url: &str) -> Result<Raw, String> {
    wire.exchange(Outgoing::get(url).with("accept", "application/json")).await
}

/// Whether this is a card, or why not.
fn judged(looked: Result<Raw, String>) -> Result<(), String> {
    let raw = looked?;
    match raw.status {
        200 if serde_json::from_slice::<serde_json::Value>(&raw.body).is_ok_and(|json| json.is_object()) => Ok(()),
        200 => Err(format!("HTTP 200 with {}, which is no JSON", shown(&raw.media_type()))),
        301 | 302 | 303 | 307 | 308 => {
            Err(format!("HTTP {}, a redirect to {}", raw.status, shown(raw.header("location"))))
        }
        status => Err(format!("HTTP {status}")),
    }
}

/// No card where it belongs: perhaps it is elsewhere.
async fn missing(wire: &Wire, base: &str, why: &str) -> Finding {
    let seen = format!("there is no card at {NEW_PATH} nor at {OLD_PATH}: {why}");
    let origin = base.find("://").and_then(|at| base[at + 3..].find('/').map(|end| &base[..at + 3 + end]));
    let at_origin = origin.map(|origin| [NEW_PATH, OLD_PATH].map(|path| format!("{origin}{path}")));
    let below = ELSEWHERE.map(|path| format!("{base}{path}"));
    for url in at_origin.into_iter().flatten().chain(below) {
        if judged(look(wire, &url).await).is_ok() {
            let fix = format!("name the card itself, as in --agent-card {}, or serve it at {NEW_PATH}", shown(&url));
            return wrong("card", seen, fix);
        }
    }
    let fix = match why {
        why if why.contains("401") || why.contains("403") => {
            "serve the card without authentication: clients read it to learn how to authenticate"
        }
        why if why.contains("redirect") => "name the address that it redirects to",
        why if why.contains("no JSON") => "check the path and the proxy: a web page is served in place of the card",
        _ => "check the path of the agent, and that the server or its proxy passes /.well-known/ on",
    };
    wrong("card", seen, fix)
}

/// What is wrong with a card that could be read.
pub(super) fn make_sense(card: &Card, reference: &Reference, findings: &mut Vec<Finding>) {
    for (rule, expected, came) in conformance::card_faults(card) {
        let seen = format!("expected {expected}, and found {came}");
        findings.push(wrong("card", seen, format!("correct the card: {rule}")));
    }
    for unknown in &card.unknown {
        let fix = "use one of JSONRPC, HTTP+JSON and GRPC, and a version of 1.0, 0.3 or 0.2, or leave the interface to clients that know it";
        findings.push(hint("card", format!("an interface that this tool does not know: {unknown}"), fix));
    }
    let from: Option<Uri> = reference.url().and_then(|url| url.parse().ok());
    for interface in &card.interfaces {
        match url_fault(&interface.url, from.as_ref()) {
            Some((seen, fix)) => findings.push(wrong("card", format!("{interface}: {seen}"), fix)),
            None => findings.push(fine("card", format!("{interface} is at {}", interface.url))),
        }
    }
    if card.interfaces.is_empty() {
        findings.push(wrong(
            "card",
            "the card names no interface",
            "list each binding and version in supportedInterfaces",
        ));
    }
}

/// What is wrong with the address of an interface on a card that came from another.
fn url_fault(url: &str, from: Option<&Uri>) -> Option<(String, &'static str)> {
    let public_url = "set the public URL of the server to the address that clients use";
    let Ok(uri) = url.parse::<Uri>() else {
        return Some((format!("{} is no URL", shown(url)), "use an absolute URL, as in https://agent.example/a2a"));
    };
    let Some(host) = uri.host().map(|host| host.trim_matches(['[', ']']).to_owned()) else {
        return Some((format!("{} has no host", shown(url)), "use an absolute URL, as in https://agent.example/a2a"));
    };
    if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified()) {
        return Some((format!("{} is no address that a client can call", shown(url)), public_url));
    }
    let from = from?;
    let own = from.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    if is_local(&host) && !is_local(&own) {
        return Some((format!("{} is private, and the card is public", shown(url)), public_url));
    }
    if from.scheme_str() == Some("https") && uri.scheme_str() == Some("http") {
        let fix = "use https:// in the card too; behind a proxy that ends TLS, set the public URL of the server";
        return Some((format!("{} is without TLS, and the card came with it", shown(url)), fix));
    }
    None
}

/// Whether a host is of this machine or its own network, as far as its text tells.
fn is_local(host: &str) -> bool {
    let is_name = host == "localhost" || [".localhost", ".local", ".internal"].iter().any(|end| host.ends_with(end));
    is_name || host.parse::<IpAddr>().is_ok_and(is_private)
}

#[cfg(test)]
mod tests {
    use super::url_fault;

    #[test]
    fn addresses_are_judged_by_where_the_card_came_from() {
        let fault = |url: &str, from: &str| url_fault(url, Some(&from.parse().unwrap())).map(|(seen, _)| seen);
        for (url, from) in [
            ("https://a.example/rpc", "https://a.example"),
            ("http://127.0.0.1:9000", "http://localhost:8080"),
            ("http://a.example", "http://a.example"),
        ] {
            assert_eq!(fault(url, from), None, "{url} from {from}");
        }
        for (url, from, why) in [
            ("http://localhost:8080", "https://a.example", "private"),
            ("https://10.0.0.7/rpc", "https://a.example", "private"),
            ("https://agent.internal", "https://a.example", "private"),
            ("http://a.example/rpc", "https://a.example", "without TLS"),
            ("http://0.0.0.0:8080", "http://localhost:8080", "no address"),
            ("/rpc", "https://a.example", "no host"),
        ] {
            assert!(fault(url, from).unwrap().contains(why), "{url} from {from}");
        }
    }
}
