//! What a reference means, and what is wrong with a card.

use super::{CardReference, violations};

#[test]
fn a_reference_is_a_url_a_path_or_a_card() {
    for (text, expected) in [
        ("https://a.example/x//", CardReference::Base("https://a.example/x".to_owned())),
        (" HTTPS://a.example ", CardReference::Base("HTTPS://a.example".to_owned())),
        (
            "https://a.example/.well-known/agent-card.json",
            CardReference::Card("https://a.example/.well-known/agent-card.json".to_owned()),
        ),
        ("https://a.example/card.json?v=1", CardReference::Card("https://a.example/card.json?v=1".to_owned())),
        ("./card", CardReference::File("./card".into())),
        ("card.json", CardReference::File("card.json".into())),
        ("file:///tmp/card", CardReference::File("/tmp/card".into())),
        (r#" {"name":"x"}"#, CardReference::Inline(r#"{"name":"x"}"#.to_owned())),
    ] {
        assert_eq!(CardReference::parse(text).unwrap(), expected, "{text}");
    }
    for bad in ["", "a.example", "ftp://a.example", "https://user@a.example", "http://"] {
        assert!(CardReference::parse(bad).is_err(), "{bad}");
    }
}

/// The members at fault.
fn wrong(card: &str) -> Vec<String> {
    violations(card.as_bytes())
        .into_iter()
        .map(|violation| format!("{} {}", violation.field, violation.description))
        .collect()
}

#[test]
fn a_card_is_checked_by_member() {
    let whole = r#"{"name":"a","description":"b","version":"1","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],
        "skills":[{"id":"s","name":"s","description":"s"}],
        "supportedInterfaces":[{"url":"https://a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#;
    assert_eq!(wrong(whole), [""; 0]);
    assert_eq!(
        wrong(r#"{"name":"","version":1,"url":"a","skills":[{"id":"s"}],"capabilities":[],"provider":{"url":"u"}}"#),
        [
            "name must not be empty",
            "description is required",
            "version must be a text",
            "protocolVersion is required",
            "skills[0].name is required",
            "skills[0].description is required",
            "provider.organization is required",
            "defaultInputModes is required",
            "defaultOutputModes is required",
            "capabilities must be an object",
            "url must be an absolute URL",
        ]
    );
    assert_eq!(
        wrong(&whole.replace(r#""protocolBinding":"JSONRPC","#, "")),
        ["supportedInterfaces[0].protocolBinding is required"]
    );
    assert_eq!(wrong("[]"), [" must be an object"]);
    assert!(wrong("{").first().unwrap().starts_with(" is not JSON"));
}
