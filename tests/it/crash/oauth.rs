//! A relay of the binary whose upstream wants tokens of OAuth 2.0: it gets them in the name of an application.

use serde_json::Value;

use super::http::{call, message};
use super::process::{Server, command, free_addr};
use crate::support::scripted::{Asked, Scripted, answer, json};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"here"}]}}"#;
const CARD: &str = r#"{"name":"A","version":"1","protocolVersion":"0.3.0","url":"","preferredTransport":"JSONRPC","capabilities":{},
    "securitySchemes":{"o":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":"HERE/token","scopes":{}}}}},"security":[{"o":["read"]}]}"#;

const CONFIG: &str = r#"
[[agent]]
slug = "upstream"
url = "URL"

[agent.relay]
credential_env = "GATEWAY_SECRET"
credential_kind = "oauth"
oauth_client_id = "gateway"
"#;

/// The first token is refused, and all others are good.
async fn upstream() -> Scripted {
    let tokens = std::sync::atomic::AtomicUsize::new(0);
    Scripted::start(move |_, asked| match asked.line.as_str() {
        "POST /token" => {
            let number = tokens.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            json(&format!(r#"{{"access_token":"token-{number}","token_type":"Bearer","expires_in":3600}}"#))
        }
        "POST /" => match asked.header("authorization") {
            Some("bearer token-1") => json(ANSWER),
            _ => answer(401, "www-authenticate: Bearer", ""),
        },
        _ => json(&CARD.replace("HERE", &format!("http://{}", asked.header("host").unwrap()))),
    })
    .await
}

fn forms(upstream: &Scripted) -> Vec<Asked> {
    upstream.asked().into_iter().filter(|asked| asked.line == "POST /token").collect()
}

#[test]
fn a_relay_gets_tokens_for_its_upstream_and_another_one_when_one_is_refused() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let upstream = runtime.block_on(upstream());
    let folder = tempfile::tempdir().unwrap();
    let own_words = "oauth_scopes = [\"agents\", \"more\"]\noauth_token_url = \"URL/token\"\n";
    for (number, more) in ["", own_words].into_iter().enumerate() {
        let config = format!("{CONFIG}{more}").replace("URL", &upstream.url);
        std::fs::write(folder.path().join("switchboard.toml"), config).unwrap();
        let addr = free_addr();
        let mut serve = command(&folder.path().join(format!("data-{number}")), addr);
        serve.env("GATEWAY_SECRET", "s3cret");
        let server = Server::start_by(serve, addr);
        if number == 0 {
            let answer = call(addr, "SendMessage", message("m-1", "go")).unwrap();
            assert_eq!(answer["message"]["parts"][0]["text"], "here", "{answer}");
            let asked = forms(&upstream);
            assert_eq!((asked.len(), asked[0].body.as_str()), (2, "grant_type=client_credentials&scope=read"));
            // The base64 of gateway:s3cret, as it is in lower case.
            assert_eq!(asked[0].header("authorization"), Some("basic z2f0zxdhetpzm2nyzxq="));
        } else {
            let failed = call(addr, "SendMessage", message("m-1", "go")).unwrap();
            assert_ne!(failed["task"]["status"]["state"], Value::Null, "no token is good any more: {failed}");
            let last = forms(&upstream).pop().unwrap();
            assert_eq!(last.body, "grant_type=client_credentials&scope=agents%20more");
        }
        server.interrupt();
    }
}
