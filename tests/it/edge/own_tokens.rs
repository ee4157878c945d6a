//! Webhooks that leave it to the server to prove who it is: the token that they get, and that a key verifies which the server
//! publishes; and webhooks that are refused when they are registered.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use axum::Router;
use axum::routing::post as on_post;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use serde_json::{Value, json};
use switchboard::{KeyAlgorithm, Server, SigningKeys};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::callers::soon;
use crate::support::edge::{Edge, echo, message};

fn with_webhook(url: &str, authentication: Value) -> String {
    let mut send = message("hello");
    send["configuration"] =
        json!({"taskPushNotificationConfig": {"id": "c", "url": url, "authentication": authentication}});
    send.to_string()
}

#[tokio::test]
async fn the_token_of_a_webhook_is_verified_with_the_keys_that_the_server_publishes() {
    let (sent, mut posts) = mpsc::channel(16);
    let app = Router::new().route(
        "/hook",
        on_post(async move |headers: HeaderMap| {
            let value = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
            sent.send(value).await.unwrap();
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let server = Server::builder().agent(echo()).outbound_allow(["127.0.0.1"]).signing_keys(keys);
    let edge = Edge::new(server.allow_unauthenticated(true).public_url("https://agents.example")).ready().await;
    let hook = format!("{origin}/hook");
    let task = edge.post("/message:send", with_webhook(&hook, json!({"scheme": "Bearer"}))).await.json();
    let value = soon(posts.recv()).await.unwrap().expect("there is a token");
    let token = value.strip_prefix("Bearer ").unwrap();

    let (text, signature) = token.rsplit_once('.').unwrap();
    let set = edge.get("/.well-known/jwks.json").await.json();
    let part = |name: &str| URL_SAFE_NO_PAD.decode(set["keys"][0][name].as_str().unwrap()).unwrap();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, [vec![4], part("x"), part("y")].concat());
    key.verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    let claims = URL_SAFE_NO_PAD.decode(text.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("https://agents.example"), &json!(origin)));
    assert_eq!(claims["taskId"], task["task"]["id"]);
    // Credentials that were given are sent as they are.
    let given = json!({"scheme": "Bearer", "credentials": "theirs"});
    let mut again: Value = serde_json::from_str(&with_webhook(&hook, given)).unwrap();
    again["message"]["messageId"] = json!("another");
    edge.post("/message:send", again.to_string()).await;
    loop {
        if soon(posts.recv()).await.unwrap().as_deref() == Some("Bearer theirs") {
            break;
        }
    }
}

#[tokio::test]
async fn a_private_address_is_refused_when_it_is_registered_and_the_setting_is_named() {
    let edge = Edge::usual();
    for url in ["http://127.0.0.1:9/", "http://169.254.169.254/", "http://[::ffff:10.0.0.1]/", "http://localhost/"] {
        let refused = edge.post("/message:send", with_webhook(url, Value::Null)).await;
        let text = refused.text();
        assert_eq!(refused.status, 400, "{url}: {text}");
        assert!(text.contains("may not be called") && text.contains("outbound_allow"), "{url}: {text}");
    }
    let strict = Edge::new(Server::builder().agent(echo()).webhooks_https_only(true));
    let refused = strict.post("/message:send", with_webhook("http://hooks.example/", Value::Null)).await;
    assert!(refused.status == 400 && refused.text().contains("webhook_https_only"), "{}", refused.text());
}
