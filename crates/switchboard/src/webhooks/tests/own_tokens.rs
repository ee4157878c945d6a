//! Tokens of the server for receivers that have given no credentials, the URLs that are taken, and the challenge.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use switchboard_engine::ports::Webhook;
use switchboard_engine::system::SystemClock;

use super::{NO_CONTENT, call, client};
use crate::outbound::tests::receiver::Receiver;
use crate::signing_keys::{KeyAlgorithm, SigningKeys};
use crate::webhooks::OwnTokens;

fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn decoded(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// Whether the token is signed with the key of the set, found as a receiver would.
fn is_signed(token: &str, set: &str) -> bool {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ED25519, UnparsedPublicKey};
    let (text, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let set: Value = serde_json::from_str(set).unwrap();
    let key = &set["keys"][0];
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
    match key["kty"].as_str().unwrap() {
        "EC" => {
            let point = [vec![4], bytes("x"), bytes("y")].concat();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(text.as_bytes(), &signature).is_ok()
        }
        _ => UnparsedPublicKey::new(&ED25519, bytes("x")).verify(text.as_bytes(), &signature).is_ok(),
    }
}

#[tokio::test]
async fn a_receiver_that_wants_a_bearer_and_has_given_none_gets_a_token_for_itself() {
    for algorithm in [KeyAlgorithm::Es256, KeyAlgorithm::EdDsa] {
        let keys = SigningKeys::generate(algorithm).unwrap();
        let issuer = Arc::new(OnceLock::from("https://agents.example".to_owned()));
        let own = OwnTokens { keys: keys.clone(), issuer, clock: Arc::new(SystemClock) };
        let client = client(&["127.0.0.0/8"]).with_own_tokens(own);
        let mut receiver = Receiver::start(NO_CONTENT).await;
        let mut ids = Vec::new();
        for _ in 0..2 {
            let mut call = call(format!("http://127.0.0.1:{}/in?a=b", receiver.port));
            call.scheme_without_credentials = Some("bearer".to_owned());
            client.post(call).await.unwrap();
            let request = receiver.request().await;
            let token = header(&request, "authorization").unwrap().strip_prefix("Bearer ").unwrap();
            assert!(is_signed(token, &keys.jwk_set()));
            let other = SigningKeys::generate(algorithm).unwrap();
            assert!(!is_signed(token, &other.jwk_set()));
            let parts: Vec<&str> = token.split('.').collect();
            let expected = json!({"alg": algorithm.as_str(), "kid": keys.active_id().unwrap(), "typ": "JWT"});
            assert_eq!(decoded(parts[0]), expected);
            let mut claims = decoded(parts[1]);
            let (iat, exp) = (claims["iat"].as_i64().unwrap(), claims["exp"].as_i64().unwrap());
            assert_eq!(exp - iat, 300);
            ids.push(claims["jti"].as_str().unwrap().to_owned());
            for name in ["iat", "exp", "jti"] {
                claims.as_object_mut().unwrap().remove(name);
            }
            assert_eq!(
                claims,
                json!({
                    "iss": "https://agents.example",
                    "aud": format!("http://127.0.0.1:{}", receiver.port),
                    "sub": "t",
                    "taskId": "t",
                    "request_body_sha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
                })
            );
        }
        assert_ne!(ids[0], ids[1]);
    }
}

#[tokio::test]
async fn other_schemes_and_servers_without_a_key_send_no_token() {
    let issuer = Arc::new(OnceLock::new());
    let empty = tempfile::tempdir().unwrap();
    let with_key = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let without_key = SigningKeys::open(empty.path()).unwrap();
    let mut receiver = Receiver::start(NO_CONTENT).await;
    for (keys, scheme) in [(&with_key, Some("Basic")), (&with_key, None), (&without_key, Some("Bearer"))] {
        let own = OwnTokens { keys: keys.clone(), issuer: issuer.clone(), clock: Arc::new(SystemClock) };
        let client = client(&["127.0.0.0/8"]).with_own_tokens(own);
        let mut call = call(format!("http://127.0.0.1:{}/", receiver.port));
        call.scheme_without_credentials = scheme.map(str::to_owned);
        client.post(call).await.unwrap();
        assert_eq!(header(&receiver.request().await, "authorization"), None, "{scheme:?}");
    }
}

#[test]
fn private_addresses_and_plain_http_are_refused_when_a_webhook_is_registered() {
    let open = client(&["10.1.0.0/16", "localhost:9000"]);
    for url in ["https://10.1.2.3/", "http://localhost:9000/", "https://hooks.example/", "http://93.184.216.34/"] {
        assert_eq!(open.check(url), Ok(()), "{url}");
    }
    for (url, why) in [
        ("https://127.0.0.1/", "127.0.0.1 port 443 may not be called: loopback"),
        ("https://10.2.0.1/", "private"),
        ("http://169.254.169.254/latest/meta-data", "link-local, where clouds keep credentials"),
        ("http://[::ffff:127.0.0.1]/", "loopback"),
        ("http://[::]/", "unspecified"),
        ("http://[64:ff9b::7f00:1]/", "loopback"),
        ("http://100.64.0.1/", "shared by carriers"),
        ("http://localhost/", "loopback"),
        ("http://LOCALHOST:9001/", "loopback"),
        ("http://a.localhost./", "loopback"),
    ] {
        let refused = open.check(url).unwrap_err();
        assert!(
            refused.contains(why) && refused.ends_with("the operator can open it (outbound_allow)"),
            "{url}: {refused}"
        );
    }
    let strict = client(&[]).https_only(true);
    assert_eq!(strict.check("https://hooks.example/"), Ok(()));
    let refused = strict.check("http://hooks.example/").unwrap_err();
    assert!(refused.contains("webhook_https_only"), "{refused}");
}

#[tokio::test]
async fn with_https_only_a_webhook_from_before_is_not_posted_to_either() {
    let receiver = Receiver::start(NO_CONTENT).await;
    let strict = client(&["127.0.0.0/8"]).https_only(true);
    let refused = super::post(&strict, format!("http://127.0.0.1:{}/", receiver.port)).await;
    assert!(matches!(refused, Err(switchboard_engine::ports::WebhookError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn a_receiver_that_does_not_return_the_token_does_not_want_webhooks() {
    let sender = client(&["127.0.0.0/8"]).challenging(true);
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    ] {
        let mut receiver = Receiver::start(answer).await;
        let url = format!("http://127.0.0.1:{}/in?a=b", receiver.port);
        let why = sender.challenge(&url).unwrap().await.unwrap_err();
        assert!(why.contains("did not confirm that it wants webhooks"), "{why}");
        let request = receiver.request().await;
        assert!(request.starts_with("GET /in?a=b&validationToken="), "{request}");
    }
    assert!(client(&[]).challenge("https://hooks.example/").is_none(), "nobody is asked unless it is set");
    let private = client(&[]).challenging(true);
    assert!(private.challenge("http://127.0.0.1:1/").unwrap().await.is_err());
}

#[tokio::test]
async fn a_receiver_that_returns_the_token_wants_webhooks() {
    use tokio::io::AsyncWriteExt as _;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let receiving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = crate::outbound::tests::receiver::read_request(&mut stream).await.unwrap();
        let token = request.split("validationToken=").nth(1).unwrap().split(' ').next().unwrap();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{token}", token.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    };
    let sender = client(&["127.0.0.0/8"]).challenging(true);
    let (asked, ()) = tokio::join!(sender.challenge(&url).unwrap(), receiving);
    assert_eq!(asked, Ok(()));
}
