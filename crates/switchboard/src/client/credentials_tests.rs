//! Which credential goes where, by what a card asks for.

use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::model::AgentCard;

use super::{Asked, Credentials, SignedTokens};
use crate::client::{OAuthClient, StoredToken};

/// What is sent to the agent of a card, as lines.
fn sent(credentials: &Credentials, card: &str) -> Vec<String> {
    let card = Dialect::V1_0.read_card(card.as_bytes(), &DecodeLimits::default()).unwrap();
    let asked = Asked { card: &card, has_certificate: false };
    let proof = credentials.for_card(&asked, credentials.bearer.as_deref()).unwrap();
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
    let without_card = |credentials: Credentials| {
        let asked = Asked { card: &AgentCard::default(), has_certificate: false };
        credentials.for_card(&asked, credentials.bearer.as_deref()).map(drop)
    };
    assert!(without_card(Credentials::header("x y", "blue")).is_err());
    let error = without_card(Credentials::bearer("two\nlines")).unwrap_err();
    assert_eq!(error.to_string(), "the credential for authorization is no header value");
}

#[test]
fn secrets_are_never_shown() {
    let mut token = StoredToken::new("https://l/t", "app", "acc3ss");
    token.refresh_token = Some("refr3sh".to_owned());
    let given = all().and_header("x-secret", "h1dden").and_api_key_for("k", "k4y");
    let given = given.and_signed(SignedTokens::new("ada").with_secret("s1gn").with_org("o", Some("org-s1gn")));
    let given = given.and_token(OAuthClient::new("app").with_secret("cl1ent"), token);
    assert!(given.stored_token().is_some());
    let shown = format!("{given:?} {:?}", given.stored_token());
    for secret in ["t0ken", "pass", "k3y", "h1dden", "k4y", "acc3ss", "refr3sh", "s1gn", "cl1ent"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn a_certificate_meets_the_scheme_that_asks_for_one() {
    let card = r#"{"url":"http://x","securitySchemes":{"m":{"type":"mutualTLS"},"b":{"type":"http","scheme":"bearer"}},
        "security":[{"m":[]},{"b":[]}]}"#;
    let card = Dialect::V1_0.read_card(card.as_bytes(), &DecodeLimits::default()).unwrap();
    for (has_certificate, headers) in [(true, 0), (false, 1)] {
        let proof = all().for_card(&Asked { card: &card, has_certificate }, Some("t0ken")).unwrap();
        assert_eq!(proof.headers.len(), headers, "{has_certificate}");
    }
}

#[test]
fn tokens_that_are_made_meet_the_schemes_of_bearer_tokens() {
    let oauth = Credentials::oauth(OAuthClient::new("app"));
    let signed = Credentials::signed(SignedTokens::new("ada").with_secret("x"));
    let blank = Credentials::signed(SignedTokens::new("ada").with_secret(" "));
    let card = r#"{"url":"http://x","securitySchemes":{"b":{"type":"http","scheme":"bearer"}},"security":[{"b":[]}]}"#;
    let card = Dialect::V1_0.read_card(card.as_bytes(), &DecodeLimits::default()).unwrap();
    let asked = Asked { card: &card, has_certificate: false };
    let asks = |credentials: &Credentials| credentials.for_card(&asked, None).unwrap().asks_for_bearer;
    assert_eq!([&oauth, &signed, &blank].map(asks), [true, true, false]);
    assert_eq!([&oauth, &signed, &blank].map(Credentials::is_empty), [false, false, true]);
    let key = r#"{"url":"http://x","securitySchemes":{"k":{"type":"apiKey","in":"header","name":"x-k"}},"security":[{"k":[]}]}"#;
    let key = Dialect::V1_0.read_card(key.as_bytes(), &DecodeLimits::default()).unwrap();
    let both = oauth.and_api_key("k3y");
    assert!(!both.for_card(&Asked { card: &key, has_certificate: false }, None).unwrap().asks_for_bearer);
}
