//! Where credentials may stand, and which of them are enough.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::request::Parts;
use switchboard_core::model::{SecurityRequirement, Timestamp};

use super::{ApiKeyNames, Verifiers};
use crate::server::authentication::{Identified, SchemeSet, SharedSecret, Tokens, Unidentified};

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
        ("/", &[("authorization", &format!("bEaReR   {ALICE} "))]),
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
        ("/", &[("authorization", "")]),
        ("/", &[("authorization", "Bearer")]),
        ("/", &[("authorization", &format!("Bearer{ALICE}"))]),
        ("/", &[("authorization", &format!("Bearer\t{ALICE}"))]),
        ("/", &[("authorization", &format!("Bearers {ALICE}"))]),
        ("/", &[("authorization", &format!("Beareé {ALICE}"))]),
        ("/", &[("authorization", &format!("Bearer {ALICE}é"))]),
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

const SECRET: &str = "a-secret-of-the-tests-alone";
const ORG_SECRET: &str = "a-secret-of-example-com-alone";

/// A token that its caller has signed, which expires at the second 100.
fn signed(claims: &str, secret: &str) -> String {
    let text = [r#"{"alg":"HS256"}"#, claims].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), text.as_bytes());
    format!("Bearer {text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn of_secret(secret: SharedSecret) -> Verifiers {
    let mut verifiers = Verifiers::default();
    verifiers.add_shared_secret(secret);
    verifiers.require(Vec::new()).unwrap();
    verifiers
}

fn is_admitted(verifiers: &Verifiers, bearer: &str, now_s: i64) -> bool {
    verifiers.identify(&request("/", &[("authorization", bearer)]), Timestamp::from_ms(now_s * 1_000)).is_ok()
}

#[test]
fn a_token_is_kept_when_it_is_seen_again_and_refused_once_it_has_expired() {
    let verifiers = of_secret(SharedSecret::new(SECRET));
    let bearer = signed(r#"{"sub":"alice","exp":100}"#, SECRET);
    assert!(is_admitted(&verifiers, &bearer, 99));
    assert_eq!(verifiers.verified.size().0, 0, "a token that is seen once is good and is not kept");
    assert!(is_admitted(&verifiers, &bearer, 99));
    assert_eq!(verifiers.verified.size().0, 1);
    assert!(is_admitted(&verifiers, &bearer, 99), "it is known");
    for changed in [bearer.replace("Bearer e", "Bearer f"), format!("{bearer}A"), bearer[..bearer.len() - 1].to_owned()]
    {
        assert!(!is_admitted(&verifiers, &changed, 99), "{changed}");
    }
    assert!(!is_admitted(&verifiers, &bearer, 100), "it has expired");
    assert_eq!(verifiers.verified.size().0, 0);
}

#[tokio::test]
async fn a_kept_token_is_refused_once_its_secret_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orgs.txt");
    std::fs::write(&path, format!("example.com {ORG_SECRET}\nother.example another-secret-of-the-tests\n")).unwrap();
    let secret = SharedSecret::default().with_orgs_of(&path).unwrap();
    let verifiers = of_secret(secret);
    let bearer = signed(r#"{"sub":"alice","org_domain":"example.com","exp":100}"#, ORG_SECRET);
    for _ in 0..3 {
        assert!(is_admitted(&verifiers, &bearer, 99));
    }
    assert_eq!(verifiers.verified.size().0, 1);
    std::fs::write(&path, "other.example another-secret-of-the-tests\n").unwrap();
    for source in verifiers.sources() {
        source.read_again().await.unwrap();
    }
    for _ in 0..3 {
        assert!(!is_admitted(&verifiers, &bearer, 99));
    }
}

#[test]
fn a_token_that_is_good_at_one_place_alone_is_never_kept() {
    let mut verifiers = of_secret(SharedSecret::new(SECRET));
    verifiers.set_addresses(["https://agents.example"].into_iter());
    let bearer = signed(r#"{"sub":"alice","aud":"https://agents.example/agents/one","exp":100}"#, SECRET);
    let is_good_at = |path: &str| {
        verifiers.identify(&request(path, &[("authorization", &bearer)]), Timestamp::from_ms(99_000)).is_ok()
    };
    for _ in 0..3 {
        assert!(is_good_at("/agents/one") && !is_good_at("/agents/two"));
    }
    assert_eq!(verifiers.verified.size().0, 0);
}

#[tokio::test]
async fn a_static_token_beside_signed_ones_is_refused_once_it_is_taken_from_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.txt");
    std::fs::write(&path, format!("{ALICE} alice\n{BOB} bob\n")).unwrap();
    let tokens = Tokens::from_file(&path).unwrap();
    let mut verifiers = Verifiers::default();
    verifiers.add_tokens(tokens.clone());
    verifiers.add_shared_secret(SharedSecret::new(SECRET));
    verifiers.require(Vec::new()).unwrap();
    let (alice, signed) = (format!("Bearer {ALICE}"), signed(r#"{"sub":"alice","exp":100}"#, SECRET));
    for _ in 0..3 {
        assert_eq!(caller(&verifiers, "/", &[("authorization", &alice)]), "alice");
        assert_eq!(caller(&verifiers, "/", &[("authorization", &signed)]), "a2a-secret#alice");
    }
    std::fs::write(&path, format!("{BOB} bob\n")).unwrap();
    tokens.reload().await.unwrap();
    assert!(!is_admitted(&verifiers, &alice, 0) && is_admitted(&verifiers, &signed, 0));
}
