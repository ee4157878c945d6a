//! Which places are tried for which card, and in which order.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_core::dialect::Dialect;

use super::{Preferences, ProtocolBinding, targets};
use crate::client::discovered_card::{CardReference, DiscoveredCard};

const BASE: &str = "http://127.0.0.1:8080/x";

/// The places, as binding, version and URL.
fn places(card: &str, dialect: Option<Dialect>, preferences: &Preferences) -> Vec<String> {
    let reference = CardReference::Base(BASE.to_owned());
    let found = found(card);
    let targets = targets(&found, &reference, dialect, preferences).unwrap();
    let shown = targets.iter().map(|target| {
        let version = target.form.version().unwrap_or("-");
        let tenant = target.tenant.as_ref().map(|tenant| format!(" of {tenant}")).unwrap_or_default();
        format!("{} {version} {}{tenant}", target.form.binding(), target.uri)
    });
    shown.collect()
}

fn found(card: &str) -> Arc<DiscoveredCard> {
    let url = format!("{BASE}/.well-known/agent-card.json");
    let card = Bytes::copy_from_slice(card.as_bytes());
    Arc::new(DiscoveredCard::read(card, Some(url), &Default::default()).unwrap())
}

fn usual(card: &str) -> Vec<String> {
    places(card, None, &Preferences::default())
}

const BOTH: &str = r#"{"supportedInterfaces":[
    {"url":"https://a/rpc/","protocolBinding":"jsonrpc","protocolVersion":"0.3"},
    {"url":"https://a/rest/","protocolBinding":"Http+Json","protocolVersion":"1.0","tenant":"t"},
    {"url":"https://a/new/","protocolBinding":"JSONRPC","protocolVersion":"1.0"},
    {"url":"https://a","protocolBinding":"urn:other","protocolVersion":"1.0"}]}"#;

#[test]
fn the_newest_version_is_best_and_then_the_order_of_the_card() {
    // A URL of JSON-RPC is called to the letter: its last slash stays.
    assert_eq!(
        usual(BOTH),
        ["HTTP+JSON 1.0 https://a/rest of t", "JSONRPC 1.0 https://a/new/", "JSONRPC 0.3 https://a/rpc/"]
            .into_iter()
            .map(str::to_owned)
            .chain(
                ["https://a/_agent-native/a2a", "https://a/a2a", "https://a/rpc", "https://a/"]
                    .map(|url| format!("JSONRPC 0.3 {url}"))
            )
            .collect::<Vec<_>>()
    );
}

#[test]
fn preferences_choose_and_order() {
    let json_first =
        Preferences { bindings: Some(vec![ProtocolBinding::JsonRpc, ProtocolBinding::HttpJson]), versions: None };
    assert_eq!(
        places(BOTH, None, &json_first)[..2],
        ["JSONRPC 1.0 https://a/new/", "HTTP+JSON 1.0 https://a/rest of t"]
    );
    let old = Preferences { bindings: None, versions: Some(vec!["0.3".to_owned()]) };
    assert_eq!(places(BOTH, None, &old)[0], "JSONRPC 0.3 https://a/rpc/");
    assert_eq!(places(BOTH, Some(Dialect::V0_3), &Preferences::default())[0], "JSONRPC 0.3 https://a/rpc/");
    let none = Preferences { bindings: Some(Vec::new()), versions: None };
    let refused = targets(&found(BOTH), &CardReference::Base(BASE.to_owned()), None, &none).unwrap_err().to_string();
    assert!(refused.contains("names no interface that this client speaks"), "{refused}");
}

#[test]
fn cards_of_0_3_and_0_2_are_called_at_their_url() {
    let card = r#"{"protocolVersion":"0.3.0","url":"https://a/r","preferredTransport":"HTTP+JSON","defaultInputModes":[],
        "additionalInterfaces":[{"url":"https://a/r","transport":"HTTP+JSON"},{"url":"https://a/j","transport":"JSONRPC"}]}"#;
    assert_eq!(usual(card), ["HTTP+JSON 0.3 https://a/r", "JSONRPC 0.3 https://a/j"]);
    let card = r#"{"protocolVersion":"0.2.6","url":"https://a/j/","defaultInputModes":["text"]}"#;
    assert_eq!(usual(card), ["JSONRPC 0.3 https://a/j/"]);
}

#[test]
fn an_url_that_is_only_the_address_of_the_agent_has_the_known_paths_behind_it() {
    let paths = ["/_agent-native/a2a", "/a2a", "/rpc", "/"];
    let below = |first: &str, root: &str| {
        let others = paths.map(|path| format!("{root}{path}"));
        std::iter::once(first.to_owned()).chain(others).collect::<Vec<_>>()
    };
    for (url, expected) in [
        (BASE, below(BASE, BASE)),
        ("http://127.0.0.1:8080/x/", below("http://127.0.0.1:8080/x/", BASE)[..4].to_vec()),
        ("https://a", below("https://a/", "https://a")[..4].to_vec()),
        ("https://a/deep/place", vec!["https://a/deep/place".to_owned()]),
        ("/there", vec!["http://127.0.0.1:8080/there".to_owned()]),
    ] {
        let card = format!(r#"{{"protocolVersion":"0.3.0","url":"{url}","defaultInputModes":[]}}"#);
        let tried: Vec<String> =
            usual(&card).iter().map(|place| place.rsplit(' ').next().unwrap().to_owned()).collect();
        assert_eq!(tried, expected, "{url}");
    }
}

#[test]
fn cards_of_older_systems_are_told_apart() {
    for (card, expected) in [
        (r#"{"url":"https://a/_agent-native/a2a","protocolVersion":"0.3"}"#, Some(Dialect::AgentNative)),
        (r#"{"url":"https://a","protocolVersion":"0.3","capabilities":{}}"#, Some(Dialect::AgentNative)),
        (r#"{"url":"","protocolVersion":"0.2.6","defaultInputModes":["text/plain"]}"#, Some(Dialect::Selectools)),
        (
            r#"{"name":"c","version":"1","url":"https://a","supportedProtocols":[],"defaultInputModes":[]}"#,
            Some(Dialect::Corvid),
        ),
        (r#"{"name":"n","url":"https://a","capabilities":{"streaming":true},"skills":[]}"#, Some(Dialect::Nexus)),
        (r#"{"url":"https://a","protocolVersion":"0.3.0","preferredTransport":"JSONRPC"}"#, None),
        (r#"{"url":"https://a","protocolVersion":"0.2.5","defaultInputModes":[]}"#, None),
        (r#"{"url":"https://a","supportedInterfaces":[]}"#, None),
    ] {
        assert_eq!(found(card).compat, expected, "{card}");
    }
    let corvid = r#"{"name":"c","version":"1","url":"https://a","supportedProtocols":[{"protocol":"A2A","endpoint":"https://b/a2a/tasks/send"}]}"#;
    assert_eq!(usual(corvid), ["HTTP+JSON - https://b/"]);
    let selectools = r#"{"url":"","protocolVersion":"0.2.6","defaultInputModes":["text/plain"]}"#;
    assert_eq!(usual(selectools)[0], format!("JSONRPC - {BASE}"));
}

#[cfg(feature = "grpc")]
#[test]
fn targets_of_grpc_have_any_scheme_or_none() {
    for (url, expected) in [
        ("a.example:50051", "http://a.example:50051/"),
        ("grpc://a.example:50051", "http://a.example:50051/"),
        ("grpcs://a.example", "https://a.example/"),
        ("https://a.example:443/", "https://a.example:443/"),
        ("dns:///a.example:50051", "http://a.example:50051/"),
    ] {
        let interface = format!(r#"{{"url":"{url}","protocolBinding":"grpc","protocolVersion":"1.0"}}"#);
        let card = format!(r#"{{"supportedInterfaces":[{interface}]}}"#);
        assert_eq!(usual(&card), [format!("GRPC 1.0 {expected}")], "{url}");
    }
}
