//! Secrets of organizations and keys of an identity provider in files that change while the server runs.

use http_body_util::BodyExt;
use serde_json::json;
use switchboard::{Issuer, Server, SharedSecret};

use crate::support::callers::soon;
use crate::support::edge::{Edge, echo, get, message, post, with};
use crate::support::issuers::{hs256, now_s};

const ACME: &str = "a-secret-of-acme-alone";
const GLOBEX: &str = "a-secret-of-globex-alone";
const NEW_ACME: &str = "another-secret-of-acme";

fn token(org: &str, secret: &str) -> String {
    format!("Bearer {}", hs256(&json!({"sub": "alice", "org_domain": org, "exp": now_s() + 900}), secret))
}

async fn status(edge: &Edge, authorization: &str) -> u16 {
    edge.ask(with(get("/tasks"), "authorization", authorization)).await.status.as_u16()
}

#[tokio::test(start_paused = true)]
async fn a_new_secret_of_an_organization_holds_from_the_next_request_on_and_ends_the_streams_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("org-secrets.txt");
    std::fs::write(&path, format!("acme.example {ACME}\nglobex.example {GLOBEX}\n")).unwrap();
    let secret = SharedSecret::default().with_orgs_of(&path).unwrap();
    let edge = Edge::new(Server::builder().agent(echo()).shared_secret(secret));
    let (acme, globex) = (token("acme.example", ACME), token("globex.example", GLOBEX));
    let open = async |authorization: &str| {
        let asked = with(post("/message:stream", message("wait").to_string()), "authorization", authorization);
        let mut body = edge.open(asked).await.into_body();
        soon(body.frame()).await.unwrap().unwrap();
        body
    };
    let (of_acme, mut of_globex) = (open(&acme).await, open(&globex).await);
    // The second time it is remembered that the tokens were verified.
    for _ in 0..2 {
        assert_eq!([status(&edge, &acme).await, status(&edge, &globex).await], [200, 200]);
    }
    // A file that is not good changes nothing.
    for bad in ["", "acme.example\n", "acme.example short\n", "acme.example one two\n"] {
        std::fs::write(&path, bad).unwrap();
        edge.handle.reload_files().await;
        assert_eq!([status(&edge, &acme).await, status(&edge, &globex).await], [200, 200], "{bad}");
    }
    std::fs::write(&path, format!("globex.example {GLOBEX}\nACME.example {NEW_ACME}\n")).unwrap();
    edge.handle.reload_files().await;
    assert_eq!([status(&edge, &acme).await, status(&edge, &globex).await], [401, 200]);
    assert_eq!(status(&edge, &token("acme.example", NEW_ACME)).await, 200);
    let rest = soon(of_acme.collect()).await.unwrap().to_bytes();
    let rest = String::from_utf8(rest.to_vec()).unwrap();
    assert!(rest.contains("event: error\ndata: {\"error\":{\"code\":401"), "{rest}");
    let waits = tokio::time::timeout(std::time::Duration::from_secs(3), async {
        loop {
            let frame = of_globex.frame().await.expect("the stream goes on").unwrap();
            let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
            assert!(!text.contains("error"), "{text}");
        }
    });
    waits.await.expect_err("it has no end");
    // An organization that is gone is refused.
    std::fs::write(&path, format!("acme.example {NEW_ACME}\n")).unwrap();
    edge.handle.reload_files().await;
    assert_eq!(status(&edge, &globex).await, 401);
}

#[test]
fn a_file_of_keys_of_a_provider_is_read_within_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    std::fs::write(&path, vec![b' '; (256 << 10) + 1]).unwrap();
    let why = Issuer::new("https://login.example", "agents").keys_in_file(&path).unwrap_err();
    assert_eq!(why.to_string(), "is larger than 262144 bytes");
}
