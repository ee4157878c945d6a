//! Tokens: how they are got, when they are renewed, and where they are not asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures_util::future::join_all;
use switchboard::CallErrorKind;
use switchboard::client::{Client, Credentials, DevicePoll, OAuthClient, RedirectListener, SignedTokens, StoredToken};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::quick;
use crate::support::callers::soon;
use crate::support::scripted::{Asked, Script, Scripted, answer, json};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"here"}]}}"#;

/// A card of 0.3 with these security schemes, which requires them all with the scope `read`.
fn card(name: &str, scheme: &str) -> String {
    format!(
        r#"{{"name":"A","version":"1","protocolVersion":"0.3.0","url":"","preferredTransport":"JSONRPC","securitySchemes":{{"{name}":{scheme}}},"security":[{{"{name}":["read"]}}]}}"#
    )
}

fn token(access: &str, more: &str) -> Script {
    json(&format!(r#"{{"access_token":"{access}","token_type":"Bearer"{more}}}"#))
}

/// An agent and its authorization server at one address. The script is asked for everything but the card and calls; a call is
/// answered if it shows the token `good`.
async fn server(scheme: &'static str, script: impl Fn(usize, &Asked) -> Script + Send + Sync + 'static) -> Scripted {
    Scripted::start(move |count, asked| match asked.line.as_str() {
        line if line.starts_with("GET /.well-known/agent") => {
            let here = format!("http://{}", asked.header("host").unwrap());
            json(&card("o", &scheme.replace("HERE", &here)))
        }
        "POST /" => match asked.header("authorization") {
            Some("bearer good") => json(ANSWER),
            _ => answer(401, "www-authenticate: Bearer", ""),
        },
        _ => script(count, asked),
    })
    .await
}

const CLIENT_CREDENTIALS: &str =
    r#"{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":"HERE/token","scopes":{"read":"r"}}}}"#;

fn app() -> OAuthClient {
    OAuthClient::new("app").with_secret("s3cret!")
}

fn forms(server: &Scripted, path: &str) -> Vec<Asked> {
    server.asked().into_iter().filter(|asked| asked.line == format!("POST {path}")).collect()
}

fn calling(credentials: Credentials) -> Client {
    quick().credentials(credentials).build().unwrap()
}

#[tokio::test]
async fn an_application_gets_a_token_in_its_own_name_and_uses_it_again() {
    let server = server(CLIENT_CREDENTIALS, |_, _| token("good", r#","expires_in":3600"#)).await;
    let credentials = Credentials::oauth(app());
    let client = calling(credentials.clone());
    let agent = client.agent(&server.url).await.unwrap();
    // Calls that need it at the same time ask once.
    for answer in join_all((0..10).map(|_| soon(agent.send_text("go")))).await {
        assert_eq!(answer.unwrap().text(), "here");
    }
    client.agent(&server.url).await.unwrap().send_text("go").await.unwrap();
    let [asked] = &forms(&server, "/token")[..] else { panic!() };
    assert_eq!(asked.body, "grant_type=client_credentials&scope=read");
    let basic = format!("basic {}", STANDARD.encode("app:s3cret%21"));
    assert_eq!(asked.header("authorization"), Some(basic.to_lowercase().as_str()));
    let kept = credentials.stored_token().unwrap();
    assert_eq!((kept.access_token.as_str(), kept.scopes.as_slice()), ("good", &["read".to_owned()][..]));
    assert_eq!((kept.token_endpoint, kept.client_id.as_str()), (format!("{}/token", server.url), "app"));
    assert!(kept.expires_at_s.is_some());
    // Given beforehand, in the other form, and with scopes of its own.
    let app = app().with_secret_in_body().with_scopes(["a", "b"]);
    client.login(&server.url, app).await.unwrap().client_credentials().await.unwrap();
    let asked = forms(&server, "/token").pop().unwrap();
    assert_eq!(asked.body, "grant_type=client_credentials&scope=a%20b&client_id=app&client_secret=s3cret%21");
    assert_eq!(asked.header("authorization"), None);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires_and_once_when_it_is_refused() {
    // Each is about to expire, so each call needs another one.
    let expiring = server(CLIENT_CREDENTIALS, |_, _| token("good", r#","expires_in":20"#)).await;
    let agent = calling(Credentials::oauth(app())).agent(&expiring.url).await.unwrap();
    for _ in 0..3 {
        agent.send_text("go").await.unwrap();
    }
    assert_eq!(forms(&expiring, "/token").len(), 3);
    // The first is refused, the second is not.
    let tokens = Arc::new(AtomicUsize::new(0));
    let withdrawn = server(CLIENT_CREDENTIALS, move |_, _| match tokens.fetch_add(1, Ordering::SeqCst) {
        0 => token("old", ""),
        _ => token("good", ""),
    })
    .await;
    let agent = calling(Credentials::oauth(app())).agent(&withdrawn.url).await.unwrap();
    agent.send_text("go").await.unwrap();
    agent.send_text("go").await.unwrap();
    assert_eq!((forms(&withdrawn, "/token").len(), forms(&withdrawn, "/").len()), (2, 3));
    // No token will do.
    let hopeless = server(CLIENT_CREDENTIALS, |count, _| token(&format!("bad{count}"), "")).await;
    let agent = calling(Credentials::oauth(app())).agent(&hopeless.url).await.unwrap();
    let error = agent.send_text("go").await.unwrap_err();
    assert_eq!((error.kind(), error.http_status()), (CallErrorKind::Refused, Some(401)), "{error}");
    assert_eq!((forms(&hopeless, "/token").len(), forms(&hopeless, "/").len()), (2, 2));
}

#[tokio::test]
async fn the_token_of_a_login_is_renewed_where_it_was_issued_and_kept_by_the_program() {
    let server = server(CLIENT_CREDENTIALS, |_, asked| match asked.body.contains("refresh_token=r1") {
        true => token("good", r#","expires_in":3600"#),
        false => answer(400, "", r#"{"error":"invalid_grant","error_description":"revoked"}"#),
    })
    .await;
    let mut expired = StoredToken::new(format!("{}/token", server.url), "app", "old");
    expired.expires_at_s = Some(1);
    expired.refresh_token = Some("r1".to_owned());
    let credentials = Credentials::token(OAuthClient::new("app"), expired.clone());
    let agent = calling(credentials.clone()).agent(&server.url).await.unwrap();
    for answer in join_all((0..5).map(|_| soon(agent.send_text("go")))).await {
        answer.unwrap();
    }
    let [asked] = &forms(&server, "/token")[..] else { panic!() };
    assert_eq!(asked.body, "grant_type=refresh_token&refresh_token=r1&client_id=app");
    let kept = credentials.stored_token().unwrap();
    assert_eq!((kept.access_token.as_str(), kept.refresh_token.as_deref()), ("good", Some("r1")));
    // One that is revoked, and one that cannot be renewed.
    expired.refresh_token = Some("r2".to_owned());
    let revoked = calling(Credentials::token(OAuthClient::new("app"), expired.clone()));
    let error = revoked.agent(&server.url).await.unwrap().send_text("go").await.unwrap_err();
    assert_eq!((error.kind(), error.wire_text()), (CallErrorKind::NotAuthorized, Some("invalid_grant")), "{error}");
    assert!(!error.may_have_arrived());
    expired.refresh_token = None;
    let over = calling(Credentials::token(OAuthClient::new("app"), expired));
    let error = over.agent(&server.url).await.unwrap().send_text("go").await.unwrap_err();
    assert!(error.to_string().contains("log in again"), "{error}");
}

#[tokio::test]
async fn a_card_cannot_send_secrets_to_a_private_address_or_over_plain_http() {
    let inside = Scripted::start(|_, _| token("good", "")).await;
    let scheme = CLIENT_CREDENTIALS.replace("HERE", &inside.url);
    let card = card("o", &scheme);
    let outside = Scripted::start(move |_, _| json(&card)).await;
    let agent = calling(Credentials::oauth(app())).agent(&outside.url).await.unwrap();
    let error = agent.send_text("go").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NotAuthorized, "{error}");
    assert!(error.to_string().contains("is not at an https URL"), "{error}");
    let scheme = CLIENT_CREDENTIALS.replace("HERE", &inside.url.replace("http:", "https:"));
    let card = self::card("o", &scheme);
    let private = Scripted::start(move |_, _| json(&card)).await;
    let agent = calling(Credentials::oauth(app())).agent(&private.url).await.unwrap();
    let error = agent.send_text("go").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NotAllowed, "{error}");
    assert!(inside.asked().is_empty());
    // What the user names is called, wherever it is.
    let app = app().with_token_url(format!("{}/token", inside.url));
    let agent = calling(Credentials::oauth(app)).agent(&outside.url).await.unwrap();
    let _ = agent.send_text("go").await;
    assert_eq!(inside.lines(), ["POST /token"]);
}

#[tokio::test]
async fn a_person_confirms_a_login_on_another_device() {
    const SCHEME: &str = r#"{"oauth2SecurityScheme":{"flows":{"deviceCode":{"deviceAuthorizationUrl":"HERE/device","tokenUrl":"HERE/token","scopes":{}}}}}"#;
    let looks = Arc::new(AtomicUsize::new(0));
    let server = server(SCHEME, move |_, asked| match asked.line.as_str() {
        "POST /device" => json(
            r#"{"device_code":"d0","user_code":"WDJB-MJHT","verification_uri":"https://l.example/d","expires_in":600,"interval":7}"#,
        ),
        _ => match looks.fetch_add(1, Ordering::SeqCst) {
            0 => answer(400, "", r#"{"error":"authorization_pending"}"#),
            1 => answer(400, "", r#"{"error":"slow_down"}"#),
            2 => answer(503, "", "busy"),
            3 => token("good", r#","refresh_token":"r""#),
            _ => answer(400, "", r#"{"error":"access_denied"}"#),
        },
    })
    .await;
    let client = quick().build().unwrap();
    let login = client.login(&server.url, OAuthClient::new("cli")).await.unwrap();
    let mut device = login.device().await.unwrap();
    assert_eq!((device.verification_url(), device.user_code()), ("https://l.example/d", "WDJB-MJHT"));
    assert!(device.time_left() > Duration::from_secs(590));
    for pause in [7, 12, 24] {
        assert_eq!(device.poll().await.unwrap(), DevicePoll::Pending(Duration::from_secs(pause)));
    }
    let DevicePoll::Done(kept) = device.poll().await.unwrap() else { panic!() };
    assert_eq!((kept.access_token.as_str(), kept.refresh_token.as_deref()), ("good", Some("r")));
    let error = device.poll().await.unwrap_err();
    assert_eq!((error.kind(), error.wire_text()), (CallErrorKind::NotAuthorized, Some("access_denied")));
    let asked = server.asked();
    let bodies: Vec<_> = asked.iter().filter(|asked| !asked.body.is_empty()).map(|asked| asked.body.as_str()).collect();
    assert_eq!(bodies[0], "scope=read&client_id=cli");
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code";
    assert_eq!(bodies[1], format!("{grant}&device_code=d0&client_id=cli"));
    // What was got is what calls are made with.
    let agent = calling(Credentials::token(OAuthClient::new("cli"), kept)).agent(&server.url).await.unwrap();
    assert_eq!(agent.send_text("go").await.unwrap().text(), "here");
}

/// The value of a parameter of a URL, which has no escapes.
fn parameter<'a>(url: &'a str, name: &str) -> &'a str {
    let query = url.split_once('?').unwrap().1;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap()
}

/// What a browser does that is sent back.
async fn browse(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_person_logs_in_with_a_browser_on_this_machine() {
    const SCHEME: &str = r#"{"type":"openIdConnect","openIdConnectUrl":"HERE/.well-known/openid-configuration"}"#;
    let server = server(SCHEME, |_, asked| match asked.line.as_str() {
        "GET /.well-known/openid-configuration" => {
            let here = format!("http://{}", asked.header("host").unwrap());
            json(&format!(
                r#"{{"issuer":"{here}","authorization_endpoint":"https://l.example/login?x=1","token_endpoint":"{here}/token"}}"#
            ))
        }
        _ => token("good", ""),
    })
    .await;
    let client = quick().build().unwrap();
    let login = client.login(&server.url, OAuthClient::new("cli")).await.unwrap();
    let listener = RedirectListener::bind().await.unwrap();
    let begun = login.authorization_code(listener.url()).await.unwrap();
    let url = begun.url().to_owned();
    assert!(url.starts_with(
        "https://l.example/login?x=1&response_type=code&client_id=cli&redirect_uri=http%3A%2F%2F127.0.0.1%3A"
    ));
    assert_eq!((parameter(&url, "code_challenge_method"), parameter(&url, "scope")), ("S256", "read"));
    let back = format!("{}?code=c%2F0&state={}&iss={}", listener.url(), parameter(&url, "state"), server.url);
    // Browsers open connections that they do not use, and ask for icons.
    let _unused = TcpStream::connect(listener.url().split('/').nth(2).unwrap()).await.unwrap();
    let icon = listener.url().replace("/callback", "/favicon.ico");
    let (came_back, _) = tokio::join!(soon(listener.wait(Duration::from_secs(60))), async {
        assert!(browse(&icon).await.starts_with("HTTP/1.1 404 "));
        assert!(browse(&back).await.starts_with("HTTP/1.1 200 "));
    });
    let kept = begun.finish(&came_back.unwrap()).await.unwrap();
    assert_eq!(kept.access_token, "good");
    let form = forms(&server, "/token").pop().unwrap().body;
    let form = format!("?{form}");
    assert_eq!((parameter(&form, "grant_type"), parameter(&form, "code")), ("authorization_code", "c%2F0"));
    let challenge = digest::digest(&digest::SHA256, parameter(&form, "code_verifier").as_bytes());
    assert_eq!(parameter(&url, "code_challenge"), URL_SAFE_NO_PAD.encode(challenge));
    // What does not belong to this login ends it, and nothing is asked for.
    let asked = server.asked().len();
    for (query, expected) in [
        ("code=c&state=other", "its state is not the one of this login"),
        ("code=c", "its state is not the one of this login"),
        ("code=c&state=STATE&iss=https://evil.example", "another authorization server"),
        ("error=access_denied&state=STATE", "the login was denied"),
        ("state=STATE", "without a code"),
    ] {
        let begun = login.authorization_code("http://127.0.0.1:1/callback").await.unwrap();
        let query = query.replace("STATE", parameter(begun.url(), "state"));
        let error = begun.finish(&query).await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::NotAuthorized);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let posted = server.asked().iter().skip(asked).filter(|asked| asked.line.starts_with("POST")).count();
    assert_eq!(posted, 0);
    let late = listener.wait(Duration::ZERO).await.unwrap_err();
    assert!(late.to_string().contains("did not come back"), "{late}");
}

#[tokio::test]
async fn metadata_of_another_issuer_are_not_used() {
    const SCHEME: &str = r#"{"type":"openIdConnect","openIdConnectUrl":"HERE/.well-known/openid-configuration"}"#;
    let server =
        server(SCHEME, |_, _| json(r#"{"issuer":"https://l.example","token_endpoint":"https://l.example/token"}"#))
            .await;
    let login = quick().build().unwrap().login(&server.url, app()).await.unwrap();
    let error = login.client_credentials().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NotAuthorized);
    assert!(error.to_string().contains("issuer is \"https://l.example\", which is not the one of this URL"), "{error}");
}

#[tokio::test]
async fn signed_tokens_are_tried_until_one_is_believed() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    // Only the second token, whatever it is, is good.
    let server = Scripted::start(move |_, asked| match asked.line.as_str() {
        "POST /" => match counter.fetch_add(1, Ordering::SeqCst) {
            0 => answer(
                401,
                "",
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Invalid or expired A2A token"}}"#,
            ),
            _ => json(ANSWER),
        },
        _ => json(&card("jwt", r#"{"type":"http","scheme":"bearer","bearerFormat":"JWT"}"#)),
    })
    .await;
    let tokens = SignedTokens::new("alice@example.com").with_secret("global").with_org("example.com", Some("org"));
    let agent = calling(Credentials::signed(tokens)).agent(&server.url).await.unwrap();
    for _ in 0..2 {
        assert_eq!(agent.send_text("go").await.unwrap().text(), "here");
    }
    let shown: Vec<_> =
        forms(&server, "/").iter().map(|asked| asked.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(shown.len(), 3);
    assert!(shown.iter().all(|token| token.starts_with("bearer eyj") && token.split('.').count() == 3), "{shown:?}");
    let signature = |at: usize| shown[at].rsplit('.').next().unwrap();
    assert_ne!(signature(0), signature(1));
    // When none is believed, a token that was given is the last that is shown.
    let refusing = Scripted::start(|_, asked| match (asked.line.as_str(), asked.header("authorization")) {
        ("POST /", Some("bearer given")) => json(ANSWER),
        ("POST /", _) => answer(401, "", ""),
        _ => json(&card("jwt", r#"{"type":"http","scheme":"bearer"}"#)),
    })
    .await;
    let tokens = SignedTokens::new("alice@example.com").with_secret("global").with_org("example.com", Some("org"));
    let both = Credentials::signed(tokens.clone()).and_bearer("given");
    calling(both).agent(&refusing.url).await.unwrap().send_text("go").await.unwrap();
    assert_eq!(forms(&refusing, "/").len(), 3);
    let error =
        calling(Credentials::signed(tokens)).agent(&refusing.url).await.unwrap().send_text("go").await.unwrap_err();
    assert_eq!(error.http_status(), Some(401));
    assert_eq!(forms(&refusing, "/").len(), 5);
}
