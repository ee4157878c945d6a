//! Which signed tokens prove their caller, by the vectors of the original and by tokens made here.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::request::Parts;
use serde_json::{Value, json};
use switchboard_core::model::Timestamp;

use super::{SharedSecret, SignedCaller, canonical};
use crate::jwt::Unverified;

/// Made with @agent-native/core 0.133: alice@example.com of example.com, good from 1700000000 to 4102444800, secret `s3cret`.
const VECTOR: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZUBleGFtcGxlLmNvbSIsIm9yZ19kb21haW4iOiJleGFtcGxlLmNvbSIsImlzcyI6Imh0dHA6Ly9sb2NhbGhvc3Q6MzAwMCIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjo0MTAyNDQ0ODAwfQ.qv4ic1Bms2uWOtlIe46YDzXz2cn4oSzQ8Z3_-SQfQig";

const NOW_S: i64 = 1_800_000_000;

fn signed_as(header: &Value, claims: &Value, algorithm: hmac::Algorithm, secret: &str) -> String {
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let text = format!("{header}.{claims}");
    let signature = hmac::sign(&hmac::Key::new(algorithm, secret.as_bytes()), text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn signed(claims: &Value, secret: &str) -> String {
    signed_as(&json!({"alg": "HS256"}), claims, hmac::HMAC_SHA256, secret)
}

/// Good claims with some changed; null takes one away.
fn claims(changes: Value) -> Value {
    let mut claims = json!({"sub": "alice@example.com", "iss": "https://mail.example", "exp": NOW_S + 900});
    let Value::Object(changes) = changes else { panic!("changes are an object") };
    for (name, value) in changes {
        claims[&name] = value;
    }
    let Value::Object(members) = &mut claims else { panic!("claims are an object") };
    members.retain(|_, value| !value.is_null());
    claims
}

fn head(path: &str) -> Parts {
    http::Request::post(path).body(()).unwrap().into_parts().0
}

fn verify_at(secret: &SharedSecret, token: &str, path: &str, now_s: i64) -> Option<SignedCaller> {
    secret.verify(&Unverified::read(token.as_bytes())?, &head(path), Timestamp::from_ms(now_s * 1000))
}

fn verify(secret: &SharedSecret, token: &str) -> Option<SignedCaller> {
    verify_at(secret, token, "/_agent-native/a2a", NOW_S)
}

#[test]
fn a_token_of_the_original_is_accepted_and_each_part_of_it_counts() {
    let secret = SharedSecret::new(" s3cret\n");
    let identity = verify(&secret, VECTOR).unwrap().identity;
    assert_eq!(identity.principal.as_str(), "a2a-secret#alice@example.com");
    assert_eq!(identity.issuer.as_deref(), Some("a2a-secret"));
    assert_eq!(identity.tenants, ["example.com".into()]);
    assert_eq!(identity.expires, Some(Timestamp::from_ms(4_102_444_800_000)));
    assert!(identity.authenticated && !identity.operator && identity.scopes.is_empty());
    assert!(verify(&SharedSecret::new("s3cret2"), VECTOR).is_none());
    assert!(verify_at(&secret, VECTOR, "/", 4_102_444_799).is_some());
    assert!(verify_at(&secret, VECTOR, "/", 4_102_444_800).is_none(), "it has expired");
    for at in 0..VECTOR.len() {
        let mut changed = VECTOR.as_bytes().to_vec();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        // The last letter of the signature has two bits that mean nothing, which a strict reader refuses as well.
        assert!(verify(&secret, std::str::from_utf8(&changed).unwrap()).is_none(), "letter {at} was changed");
    }
}

#[test]
fn what_a_token_must_say() {
    let secret = SharedSecret::new("s3cret");
    for (changes, is_good) in [
        (json!({}), true),
        (json!({"exp": null}), false),
        (json!({"exp": NOW_S}), false),
        (json!({"exp": NOW_S + 1}), true),
        (json!({"exp": "soon"}), false),
        (json!({"exp": 1e300}), true),
        (json!({"exp": NOW_S as f64 + 0.5}), false),
        (json!({"nbf": NOW_S}), true),
        (json!({"nbf": NOW_S + 1}), false),
        (json!({"nbf": "now"}), false),
        (json!({"sub": null}), false),
        (json!({"sub": ""}), false),
        (json!({"sub": 7}), false),
        (json!({"sub": "a\nb"}), false),
        (json!({"sub": "a".repeat(513)}), false),
        (json!({"iss": null}), true),
        (json!({"iss": ""}), false),
        (json!({"iss": 7}), false),
        (json!({"org_domain": ""}), true),
        (json!({"org_domain": "Example.COM"}), true),
        (json!({"org_domain": "a/b"}), false),
        (json!({"org_domain": "tasks"}), false),
    ] {
        assert_eq!(verify(&secret, &signed(&claims(changes.clone()), "s3cret")).is_some(), is_good, "{changes}");
    }
    let scoped = verify(&secret, &signed(&claims(json!({"scope": "a:read  b"})), "s3cret")).unwrap();
    assert_eq!(*scoped.identity.scopes, ["a:read", "b"]);
}

#[test]
fn only_hs256_counts_and_nothing_unknown_is_skipped() {
    let secret = SharedSecret::new("s3cret");
    let claims = claims(json!({}));
    let with = |header: Value, algorithm| verify(&secret, &signed_as(&header, &claims, algorithm, "s3cret")).is_some();
    assert!(with(json!({"alg": "HS256", "typ": "JWT"}), hmac::HMAC_SHA256));
    assert!(with(json!({"typ": "at+jwt", "alg": "HS256", "kid": "x"}), hmac::HMAC_SHA256));
    for (header, algorithm) in [
        (json!({"alg": "HS512"}), hmac::HMAC_SHA512),
        (json!({"alg": "HS384"}), hmac::HMAC_SHA384),
        (json!({"alg": "none"}), hmac::HMAC_SHA256),
        (json!({"alg": "hs256"}), hmac::HMAC_SHA256),
        (json!({"alg": "RS256"}), hmac::HMAC_SHA256),
        (json!({"alg": "HS256", "crit": ["exp"]}), hmac::HMAC_SHA256),
        (json!({"alg": "HS256", "typ": "logout+jwt"}), hmac::HMAC_SHA256),
        (json!({"alg": ["HS256"]}), hmac::HMAC_SHA256),
        (json!({}), hmac::HMAC_SHA256),
    ] {
        assert!(!with(header.clone(), algorithm), "{header}");
    }
    let good = signed(&claims, "s3cret");
    let (text, signature) = good.rsplit_once('.').unwrap();
    for bad in [
        format!("{text}."),
        text.to_owned(),
        format!("{text}.{signature}."),
        format!("{text}.{signature}.x"),
        format!("{text}.{signature}="),
        format!(".{text}.{signature}"),
        String::new(),
        "..".to_owned(),
        format!("{}.{}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#), text.split_once('.').unwrap().1),
        format!("{good}{}", "A".repeat(crate::jwt::JWT_BYTES_MAX)),
    ] {
        assert!(verify(&secret, &bad).is_none(), "{bad:.200}");
    }
    // Two members of one name could be read in two ways.
    let twice = format!(r#"{{"sub":"alice","sub":"bob","exp":{}}}"#, NOW_S + 900);
    let text = format!("eyJhbGciOiJIUzI1NiJ9.{}", URL_SAFE_NO_PAD.encode(twice));
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"s3cret"), text.as_bytes());
    assert!(verify(&secret, &format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))).is_none());
}

#[test]
fn an_organizations_secret_is_good_for_its_own_members_alone() {
    let both = SharedSecret::new("the-secret-of-all").with_org("ACME.com", "the-secret-of-acme").with_org("o.org", "x");
    let of = |org: Value| claims(json!({"org_domain": org}));
    for (org, with, tenant) in [
        (json!("acme.com"), "the-secret-of-acme", Some("acme.com")),
        (json!("Acme.Com"), "the-secret-of-acme", Some("acme.com")),
        (json!("other.com"), "the-secret-of-acme", None),
        (json!("o.org"), "the-secret-of-acme", None),
        (json!(null), "the-secret-of-acme", None),
        (json!("acme.com"), "the-secret-of-all", Some("acme.com")),
        (json!("other.com"), "the-secret-of-all", Some("other.com")),
        (json!(null), "the-secret-of-all", Some("")),
        (json!("acme.com"), "x", None),
    ] {
        let found = verify(&both, &signed(&of(org.clone()), with));
        let found = found.map(|found| found.identity.owner(None).unwrap().tenant.as_str().to_owned());
        assert_eq!(found.as_deref(), tenant, "{org} {with}");
    }
    // The same person by either secret is the same owner.
    let [one, other] = ["the-secret-of-all", "the-secret-of-acme"]
        .map(|with| verify(&both, &signed(&of(json!("acme.com")), with)).unwrap().identity.owner(None).unwrap());
    assert_eq!(one, other);
    let alone = SharedSecret::default().with_org("acme.com", "the-secret-of-acme");
    assert!(verify(&alone, &signed(&of(json!("acme.com")), "the-secret-of-acme")).is_some());
    assert!(verify(&alone, &signed(&of(json!(null)), "")).is_none(), "no secret is not an empty secret");
}

#[test]
fn an_audience_must_be_this_server() {
    let mut secret = SharedSecret::new("s3cret");
    let bound = |audience: Value| signed(&claims(json!({"aud": audience})), "s3cret");
    assert!(verify(&secret, &bound(json!("https://agents.example"))).is_none(), "without an own address none is ours");
    secret.set_addresses(["https://agents.example/base", "http://localhost:8080"].into_iter());
    for (audience, path, expected) in [
        ("https://agents.example/base", "/rpc", Some(true)),
        ("https://AGENTS.example:443/base/", "/rpc", Some(true)),
        ("https://agents.example/base/a2a", "/rpc", Some(true)),
        ("https://agents.example/base/_agent-native/a2a", "/", Some(true)),
        ("http://localhost:8080", "/rpc", Some(true)),
        ("https://agents.example", "/rpc", None),
        ("http://agents.example/base", "/rpc", None),
        ("https://agents.example:444/base", "/rpc", None),
        ("https://agents.example.evil/base", "/rpc", None),
        ("https://agents.example/base/agents/x", "/agents/x/_agent-native/a2a", Some(false)),
        ("https://agents.example/base/agents/x", "/base/agents/x/_agent-native/a2a", Some(false)),
        ("https://agents.example/base/agents/x", "/agents/y/_agent-native/a2a", None),
        ("https://agents.example/base/agents/x", "/agents/x/y/a2a", None),
        ("https://agents.example/base/apps/x", "/apps/x/_agent-native/a2a", Some(false)),
        ("https://agents.example/base/apps/x", "/agents/x/_agent-native/a2a", Some(false)),
        ("https://agents.example/base/x", "/x/_agent-native/a2a", Some(false)),
        ("https://agents.example/base/x", "/apps/x/_agent-native/a2a", Some(false)),
        ("https://agents.example/base/apps/y", "/apps/x/_agent-native/a2a", None),
        ("https://agents.example/apps/x", "/apps/x/_agent-native/a2a", None),
        ("agents", "/rpc", None),
        ("", "/rpc", None),
    ] {
        let found = verify_at(&secret, &bound(json!(audience)), path, NOW_S);
        assert_eq!(found.map(|found| found.is_for_all), expected, "{audience} at {path}");
    }
    assert!(verify(&secret, &bound(json!(["https://other.example", "http://localhost:8080"]))).is_some());
    for wrong in [json!([]), json!(7), json!({"a": 1}), json!(["https://other.example"])] {
        assert!(verify(&secret, &bound(wrong.clone())).is_none(), "{wrong}");
    }
}

#[test]
fn a_url_has_one_form_as_an_audience() {
    for (url, expected) in [
        ("https://a.example", "https://a.example"),
        ("https://a.example/", "https://a.example"),
        ("https://a.example/_agent-native/a2a", "https://a.example"),
        ("https://a.example/a2a", "https://a.example"),
        ("https://a.example/x/a2a/", "https://a.example/x"),
        ("http://[::1]:80/x?y", "http://[::1]/x"),
    ] {
        assert_eq!(canonical(url, "").as_deref(), Some(expected), "{url}");
    }
}

#[test]
fn secrets_of_organizations_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orgs.txt");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        SharedSecret::default().with_orgs_of(&path).map_err(|error| error.to_string())
    };
    let secrets =
        read("# of the organizations\n\nAcme.com the-secret-of-acme\nother.org   another-secret-of-theirs\n").unwrap();
    let token = signed(&claims(json!({"org_domain": "acme.com"})), "the-secret-of-acme");
    assert!(verify(&secrets, &token).is_some());
    assert!(!format!("{secrets:?}").contains("secret-of"), "{secrets:?}");
    assert_eq!(read("acme.com\n").unwrap_err(), "line 1: expected DOMAIN SECRET");
    assert_eq!(read("\na b c\n").unwrap_err(), "line 2: expected DOMAIN SECRET");
    let reserved = "line 1: domain \"tasks\" is reserved; choose another name";
    assert_eq!(read("tasks the-secret-of-acme").unwrap_err(), reserved);
    assert_eq!(read(&"x".repeat((1 << 20) + 1)).unwrap_err(), "is larger than 1048576 bytes");
    let gone = SharedSecret::default().with_orgs_of(folder.path().join("none")).unwrap_err().to_string();
    assert_eq!(gone, "cannot be read: No such file or directory (os error 2)");
    assert!(SharedSecret::new("short").is_short() && !SharedSecret::new("a-long-random-text").is_short());
    assert!(SharedSecret::new(" \n").is_empty());
}
