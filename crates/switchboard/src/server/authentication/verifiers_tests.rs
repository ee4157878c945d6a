//! Where credentials may stand, and which of them are enough.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use switchboard_core::model::{SecurityRequirement, Timestamp};

use super::{ApiKeyNames, Verifiers};
use crate::server::authentication::{Identified, SchemeSet, Tokens, Unidentified};

const ALICE: &str = "a-token-of-alice-for-tests";
const BOB: &str = "b-token-of-bob-for-tests";

fn verifiers(requirements: &[&[&str]]) -> Verifiers {
    let mut verifiers = Verifiers::default();
    verifiers.add_tokens(Tokens::parse(&format!("{ALICE} alice acme\n{BOB} bob\n")).unwrap());
    verifiers.add_basic();
    let name = |name: &str| Some(name.to_owned());
    let names = ApiKeyNames { header: name("X-Key"), query: name("key"), cookie: name("session") };
    verifiers.add_api_keys(names.resolve().unwrap().unwrap());
    let requirement = |names: &&[&str]| SecurityRequirement {
        schemes: names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect(),
    };
    verifiers.require(requirements.iter().map(requirement).collect()).unwrap();
    verifiers
}

fn request(path: &str, headers: &[(&str, &str)]) -> Parts {
    let request = http::Request::get(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

/// The principal of a request, or that it was refused.
fn caller(verifiers: &Verifiers, path: &str, headers: &[(&str, &str)]) -> String {
    match verifiers.identify(&request(path, headers), Timestamp::from_ms(0)) {
        Ok(Identified::Known(identity, _)) => identity.principal.as_str().to_owned(),
        Ok(Identified::Anonymous) => "everybody".to_owned(),
        Err(Unidentified::Refused(error)) => error.to_string(),
        Err(Unidentified::KeysNeeded(_)) => "keys are needed".to_owned(),
    }
}

const REFUSED: &str = "Authentication required: send a token of this server as Authorization: Bearer TOKEN, or your name and your \
                       token by HTTP Basic, or a token in the header x-key, or a token in the query parameter key, or a token in \
                       the cookie session";

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

#[test]
fn a_token_is_found_at_every_place_that_is_configured() {
    let verifiers = verifiers(&[]);
    let query = format!("/tasks?a=1&key={ALICE}");
    let cookies = format!("a=b; session={ALICE}; c=d");
    let (bearer, named) = (format!("Bearer {ALICE}"), basic("alice", ALICE));
    let both = [("authorization", bearer.as_str()), ("x-key", ALICE)];
    for (path, headers) in [
        ("/", &[("authorization", bearer.as_str())][..]),
        ("/", &[("authorization", named.as_str())]),
        ("/", &[("authorization", &named.replace("Basic", "bAsIc"))]),
        ("/", &[("x-key", ALICE)]),
        (&query, &[]),
        ("/", &[("cookie", cookies.as_str())]),
        // HTTP/2 takes the cookies apart.
        ("/", &[("cookie", "a=b"), ("cookie", &format!("session={ALICE}"))]),
        ("/", &[("cookie", &format!("session=\"{ALICE}\""))]),
        ("/", &both),
    ] {
        assert_eq!(caller(&verifiers, path, headers), "alice", "{path} {headers:?}");
    }
}

#[test]
fn a_bad_or_doubled_credential_refuses_the_request_whatever_else_it_has() {
    let verifiers = verifiers(&[]);
    let bearer = format!("Bearer {ALICE}");
    let good = ("authorization", bearer.as_str());
    let session = format!("session={ALICE}");
    let twice = format!("/?key={ALICE}&key={ALICE}");
    for (path, headers) in [
        ("/", &[][..]),
        ("/", &[good, good]),
        ("/", &[good, ("x-key", "wrong")]),
        ("/", &[("x-key", ALICE), ("x-key", ALICE)]),
        ("/", &[("x-key", "")]),
        ("/?key=wrong", &[good]),
        ("/?key=%ff", &[good]),
        (&twice, &[]),
        ("/", &[good, ("cookie", "session=wrong")]),
        ("/", &[("cookie", &session), ("cookie", &session)]),
        ("/", &[("cookie", &format!("{session}; {session}"))]),
        ("/", &[("authorization", "Negotiate abc"), ("x-key", ALICE)]),
        ("/", &[("authorization", &basic("bob", ALICE))]),
        ("/", &[("authorization", &basic("", ALICE))]),
        ("/", &[("authorization", &format!("Basic {}", STANDARD.encode(ALICE)))]),
        ("/", &[("authorization", &format!("Basic alice:{ALICE}"))]),
        ("/", &[("x-other", ALICE), ("cookie", "other=1")]),
    ] {
        assert_eq!(caller(&verifiers, path, headers), REFUSED, "{path} {headers:?}");
    }
}

#[test]
fn only_what_is_configured_is_looked_at() {
    let mut plain = Verifiers::default();
    plain.add_tokens(Tokens::parse(&format!("{ALICE} alice\n")).unwrap());
    plain.require(Vec::new()).unwrap();
    assert_eq!(plain.challenge(), "Bearer realm=\"switchboard\"");
    let refused = "Authentication required: send a token of this server as Authorization: Bearer TOKEN";
    assert_eq!(caller(&plain, &format!("/?key={ALICE}"), &[("x-key", ALICE)]), refused);
    assert_eq!(caller(&plain, "/", &[("authorization", &basic("alice", ALICE))]), refused);
    let challenge = verifiers(&[]).challenge();
    assert_eq!(challenge, "Bearer realm=\"switchboard\", Basic realm=\"switchboard\", charset=\"UTF-8\"");
}

#[test]
fn requirements_are_alternatives_of_schemes_that_are_needed_together() {
    let verifiers = verifiers(&[&["bearer", "apiKey"], &["basic"]]);
    let (bearer, named) = (format!("Bearer {ALICE}"), basic("bob", BOB));
    for (headers, expected) in [
        (&[("authorization", bearer.as_str()), ("x-key", BOB)][..], "alice"),
        (&[("authorization", named.as_str())], "bob"),
        (&[("authorization", bearer.as_str())], REFUSED),
        (&[("x-key", BOB)], REFUSED),
        (&[("authorization", named.as_str()), ("x-key", ALICE)], "bob"),
    ] {
        assert_eq!(caller(&verifiers, "/", headers), expected, "{headers:?}");
    }
    let requirements = verifiers.schemes().requirements();
    assert_eq!(requirements[0].schemes, SchemeSet::BEARER.and(SchemeSet::API_KEY_HEADER));
    let resolve = |name: &str| {
        let requirement = SecurityRequirement { schemes: vec![(name.to_owned(), Vec::new())] };
        verifiers.schemes().resolve(requirement).unwrap_err()
    };
    let known =
        "\"mtls\" is no security scheme of this server; it has bearer, basic, apiKey, apiKeyQuery, apiKeyCookie";
    assert_eq!(resolve("mtls"), known);
    let empty = verifiers.schemes().resolve(SecurityRequirement::default()).unwrap_err();
    assert_eq!(empty, "a security requirement without a scheme would let everybody in");
}

#[test]
fn names_that_mean_something_else_are_refused() {
    let resolve = |names: ApiKeyNames| names.resolve().unwrap_err();
    let header = |name: &str| ApiKeyNames { header: Some(name.to_owned()), ..ApiKeyNames::default() };
    for name in ["Authorization", "cookie", "", "a b", "A2A-Version"] {
        let expected = format!("{name:?} cannot be the header of API keys; use one such as X-API-Key");
        assert_eq!(resolve(header(name)), expected);
    }
    for name in ["tenant", "", "a=b", "a;b"] {
        let names = ApiKeyNames { query: Some(name.to_owned()), ..ApiKeyNames::default() };
        assert_eq!(
            resolve(names),
            format!("{name:?} cannot be the query parameter of API keys; use one such as api_key")
        );
    }
    let names = ApiKeyNames { cookie: Some("a;b".to_owned()), ..ApiKeyNames::default() };
    assert_eq!(resolve(names), "\"a;b\" cannot be the cookie of API keys; use one such as api_key");
    assert!(ApiKeyNames::default().resolve().unwrap().is_none());
}
