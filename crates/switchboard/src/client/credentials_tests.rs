//! Which credential goes where, by what a card asks for.

use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::json::DecodeLimits;

use super::Credentials;

/// What is sent to the agent of a card, as lines.
fn sent(credentials: &Credentials, card: &str) -> Vec<String> {
    let card = Dialect::V1_0.read_card(card.as_bytes(), &DecodeLimits::default()).unwrap();
    let proof = credentials.for_card(&card).unwrap();
    let headers = proof.headers.iter().map(|(name, value)| {
        assert!(value.is_sensitive(), "{name}");
        format!("{name}: {}", value.to_str().unwrap())
    });
    headers.chain(proof.query.iter().map(|(name, value)| format!("?{name}={value}"))).collect()
}

const BEARER: &str = "authorization: Bearer t0ken";

fn all() -> Credentials {
    Credentials::bearer("t0ken").and_basic("ada", "pass").and_api_key("k3y")
}

#[test]
fn the_scheme_of_the_card_decides_in_either_form() {
    for (card, expected) in [
        (r#"{"name":"a"}"#, vec![BEARER, "x-api-key: k3y"]),
        // 1.0.
        (
            r#"{"securitySchemes":{"b":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}},"securityRequirements":[{"schemes":{"b":{}}}]}"#,
            vec![BEARER],
        ),
        (
            r#"{"securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X-Key"}}},"securityRequirements":[{"schemes":{"k":{}}}]}"#,
            vec!["x-key: k3y"],
        ),
        // 0.3.
        (
            r#"{"url":"http://x","securitySchemes":{"b":{"type":"http","scheme":"basic"}},"security":[{"b":[]}]}"#,
            vec!["authorization: Basic YWRhOnBhc3M="],
        ),
        (
            r#"{"url":"http://x","securitySchemes":{"k":{"type":"apiKey","in":"query","name":"key"}},"security":[{"k":[]}]}"#,
            vec!["?key=k3y"],
        ),
        (
            r#"{"url":"http://x","securitySchemes":{"k":{"type":"apiKey","in":"cookie","name":"sid"}},"security":[{"k":[]}]}"#,
            vec!["cookie: sid=k3y"],
        ),
        // The bare list of words of 0.2.
        (r#"{"url":"http://x","authentication":{"schemes":["bearer"]}}"#, vec![BEARER]),
        // Schemes, and none is required.
        (r#"{"url":"http://x","securitySchemes":{"b":{"type":"http","scheme":"bearer"}}}"#, vec![BEARER]),
    ] {
        assert_eq!(sent(&all(), card), expected, "{card}");
    }
}

#[test]
fn a_requirement_that_can_be_met_is_chosen() {
    let card = r#"{"url":"http://x","securitySchemes":{"m":{"type":"mutualTLS"},"o":{"type":"oauth2","flows":
        {"clientCredentials":{"tokenUrl":"https://x/t","scopes":{}}}},"k":{"type":"apiKey","in":"header","name":"x-k"}},
        "security":[{"m":[]},{"o":[],"k":[]}]}"#;
    assert_eq!(sent(&all(), card), [BEARER, "x-k: k3y"]);
    let named = Credentials::none().and_api_key_for("x-k", "other").and_bearer("t0ken");
    assert_eq!(sent(&named, card), [BEARER, "x-k: other"]);
    // What the user gave is sent even where the card asks for something else: the card may be wrong.
    assert_eq!(sent(&Credentials::basic("ada", "pass"), card), ["authorization: Basic YWRhOnBhc3M="]);
}

#[test]
fn headers_are_sent_whatever_the_card_says() {
    let credentials = Credentials::header("x-team", "blue");
    assert_eq!(sent(&credentials, r#"{"name":"a"}"#), ["x-team: blue"]);
    assert!(Credentials::header("x y", "blue").without_card().is_err());
    let error = Credentials::bearer("two\nlines").without_card().map(drop).unwrap_err();
    assert_eq!(error.to_string(), "the credential for authorization is no header value");
}

#[test]
fn secrets_are_never_shown() {
    let shown = format!("{:?}", all().and_header("x-secret", "h1dden").and_api_key_for("k", "k4y"));
    for secret in ["t0ken", "pass", "k3y", "h1dden", "k4y"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
