//! Fuzz targets of what the edge reads of a request before its body, and of the files that operators write.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, header};
use switchboard_core::model::Timestamp;
use switchboard_fuzz::{run, texts};

use crate::server::authentication::{Identified, Verifiers};
use crate::server::downloads::serve::{RangeOutcome, wanted};
use crate::server::edge::paths::{name_grpc_path, name_path};
use crate::server::uri::{check_name, decode, encode, query_pairs};
use crate::signing_secrets::SigningSecrets;
use crate::{Issuer, KeyAlgorithm, Rules, SharedSecret, SigningKeys, Tokens};

#[test]
fn fuzz_paths_and_queries() {
    let corpus = texts(&[
        "/agents/echo/tasks/t-1/artifacts/a%20b?part=1&tenant=acme",
        "/acme/tasks/t-1/pushNotificationConfigs/c",
        "/v1/message:send",
        "/api/outbox/12:redrive",
        "/agents/echo/dialects/selectools/a2a",
        "/lf.a2a.v1.A2AService/SendMessage",
        "/.well-known/agent-card.json",
    ]);
    run("paths and queries", &corpus, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        for base in ["", "/a2a"] {
            let _ = name_path(path, base).is_public();
            let _ = name_grpc_path(path, base).is_public();
        }
        let _ = query_pairs(query);
        let _ = check_name("tenant", path);
        if let Some(decoded) = decode(path) {
            assert_eq!(decode(&encode(&decoded)).as_deref(), Some(&*decoded));
        }
    });
}

#[test]
fn fuzz_ranges() {
    run(
        "ranges",
        &texts(&["bytes=0-10", "bytes=-5", "bytes=7-", "bytes=0-1,2-3", "bytes=99999999999999999999-"]),
        |input| {
            let Ok(value) = HeaderValue::from_bytes(input) else { return };
            let headers = HeaderMap::from_iter([(header::RANGE, value)]);
            for bytes in [0, 1, 1_000, u64::MAX] {
                if let RangeOutcome::Part(range) = wanted(&headers, "\"e\"", bytes, true) {
                    assert!(range.start < range.end && range.end <= bytes, "{range:?} of {bytes}");
                }
            }
        },
    );
}

#[test]
fn fuzz_rule_files() {
    let corpus = texts(&[
        "allow scope:agents:use send,read,cancel *\ndeny * extended-card researcher # not even for operators",
        "allow tenant:acme,principal:alice * researcher/summarise\nallow authenticated ListTasks researcher/-",
        "example.com a-long-random-secret\n# none\nacme.example another-long-secret",
    ]);
    run("rule files", &corpus, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        match Rules::parse(text) {
            Ok(rules) => assert!(rules.len() <= text.lines().count()),
            Err(error) => assert!(error.line >= 1 && error.line <= text.lines().count(), "{error}"),
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orgs.txt");
        std::fs::write(&path, input).unwrap();
        if let Err(error) = SharedSecret::default().with_orgs_of(&path) {
            assert!(!error.to_string().contains("long-"), "a secret is quoted: {error}");
        }
    });
}

/// Whatever is done to a good token or to what it is sent with, nobody else is let in by it.
#[test]
fn fuzz_credentials() {
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"a-long-random-secret");
    let signed = |header: &str, claims: &str| {
        let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = aws_lc_rs::hmac::sign(&key, text.as_bytes());
        format!("Bearer {text}.{}", URL_SAFE_NO_PAD.encode(signature))
    };
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let claims = r#"{"sub":"alice","iss":"https://login.example","aud":"agents","exp":9999999999}"#;
    let json: serde_json::Value = serde_json::from_str(claims).unwrap();
    let issued = format!("Bearer {}", keys.current().sign_token(&json).unwrap());
    let good = [
        signed(r#"{"alg":"HS256"}"#, r#"{"sub":"alice","exp":9999999999}"#),
        issued,
        "Bearer s3cret-token-of-alice".to_owned(),
        "Basic YWxpY2U6czNjcmV0LXRva2VuLW9mLWFsaWNl".to_owned(),
    ];
    let mut verifiers = Verifiers::default();
    verifiers.add_tokens(Tokens::parse("s3cret-token-of-alice alice").unwrap());
    verifiers.add_basic();
    verifiers.add_shared_secret(SharedSecret::new("a-long-random-secret"));
    let issuer = Issuer::new("https://login.example", "agents").keys(keys.jwk_set()).unwrap();
    verifiers.add_issuer(issuer).unwrap();
    verifiers.require(Vec::new()).unwrap();
    let identify = |authorization: &[u8]| {
        let value = HeaderValue::from_bytes(authorization).ok()?;
        let request = http::Request::get("/").header(header::AUTHORIZATION, value).body(()).ok()?;
        match verifiers.identify(&request.into_parts().0, Timestamp::from_ms(0)) {
            Ok(Identified::Known(identity, _)) => Some(identity),
            Ok(Identified::Anonymous) => panic!("this server is not open"),
            Err(_) => None,
        }
    };
    for authorization in &good {
        assert!(identify(authorization.as_bytes()).is_some(), "{authorization}");
    }
    let names = ["alice", "a2a-secret#alice", "https://login.example#alice"];
    let mut corpus: Vec<Vec<u8>> = good.iter().map(|authorization| authorization.clone().into_bytes()).collect();
    corpus.push(signed(r#"{"alg":"none"}"#, claims).into_bytes());
    run("credentials", &corpus, |input| {
        if let Some(identity) = identify(input) {
            assert!(names.contains(&identity.principal.as_str()) && !identity.operator, "{identity:?}");
        }
    });
}

#[test]
fn fuzz_token_files() {
    let corpus = texts(&[
        "s3cret-token-of-alice alice acme,globex\ns3cret-token-of-ops ops +operator # nobody else",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx\n# old",
    ]);
    run("token files", &corpus, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        if let Err(error) = Tokens::parse(text) {
            // A file of tokens that is wrong must not put them into the log.
            assert!(!error.to_string().contains("s3cret-token"), "{error}");
        }
        let _ = SigningSecrets::parse(text);
    });
}
