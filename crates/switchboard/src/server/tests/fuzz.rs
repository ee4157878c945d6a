//! Fuzz targets of what the edge reads of a request before its body, and of the files that operators write.

use http::{HeaderMap, HeaderValue, header};
use switchboard_fuzz::{run, texts};

use crate::Tokens;
use crate::server::downloads::{RangeOutcome, wanted};
use crate::server::edge::paths::{check_name, decode, encode, name_grpc_path, name_path, query_pairs};
use crate::signing_secrets::SigningSecrets;

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
