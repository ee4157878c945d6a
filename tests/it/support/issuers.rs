//! Parties that sign tokens: apps that share a secret with the server, and an identity provider that publishes its keys.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use switchboard_engine::ports::Clock;
use switchboard_engine::system::SystemClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

pub(crate) fn now_s() -> i64 {
    SystemClock.now().as_ms() / 1000
}

fn part(json: &Value) -> String {
    URL_SAFE_NO_PAD.encode(json.to_string())
}

/// A token that an app signs with a secret, as those of agent-native do.
pub(crate) fn hs256(claims: &Value, secret: &str) -> String {
    let text = format!("{}.{}", part(&json!({"alg": "HS256"})), part(claims));
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// One key of an identity provider.
pub(crate) struct Signer {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    pub(crate) fn new(id: &'static str) -> Self {
        Self { id, pair: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap() }
    }

    pub(crate) fn jwk(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let [x, y] = [x, y].map(|number| URL_SAFE_NO_PAD.encode(number));
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": x, "y": y})
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        let text = format!("{}.{}", part(&json!({"alg": "ES256", "typ": "JWT", "kid": self.id})), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// The web server of an identity provider: its discovery document, and its keys, which can be exchanged.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    keys: Arc<Mutex<Option<Value>>>,
    fetched: Arc<AtomicUsize>,
}

impl Provider {
    pub(crate) async fn start(keys: &[Value]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let keys = Arc::new(Mutex::new(Some(json!({ "keys": keys }))));
        let provider = Self { address, keys, fetched: Arc::default() };
        let serving = provider.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { break };
                    request.push(byte);
                }
                let answer = serving.answer(&String::from_utf8_lossy(&request));
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        provider
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://{}/realms/acme", self.address)
    }

    pub(crate) fn keys_url(&self) -> String {
        format!("http://{}/keys", self.address)
    }

    /// How often the keys were fetched.
    pub(crate) fn fetched(&self) -> usize {
        self.fetched.load(Ordering::SeqCst)
    }

    /// Publishes other keys; none makes every fetch fail.
    pub(crate) fn publish(&self, keys: Option<&[Value]>) {
        *self.keys.lock().unwrap() = keys.map(|keys| json!({ "keys": keys }));
    }

    fn answer(&self, request: &str) -> String {
        let body = match request.split(' ').nth(1) {
            Some("/realms/acme/.well-known/openid-configuration") => {
                Some(json!({"issuer": self.issuer(), "jwks_uri": self.keys_url()}))
            }
            Some("/keys") => {
                self.fetched.fetch_add(1, Ordering::SeqCst);
                self.keys.lock().unwrap().clone()
            }
            _ => None,
        };
        let (status, body) = match body {
            Some(body) => ("200 OK", body.to_string()),
            None => ("503 Service Unavailable", String::new()),
        };
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
    }
}
