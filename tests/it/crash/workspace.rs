//! Servers as apps of a workspace: they find each other by a manifest and prove their users by one secret, and an agent outside is called as before.
//!
//! Beside this file, the workspace is tested where its parts are: sources and their order, names in any case, and changes while a program runs in
//! `directory/tests.rs` of the hub; tokens, organizations and agents outside in `directory/caller_tests.rs`; addresses below `/apps/` in `server/tests/routes.rs`;
//! secrets that are replaced and passed on in `edge/organizations.rs`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use switchboard::client::SignedTokens;

use super::process::{Server, command, free_addr};

const SECRET: &str = "a-secret-that-all-apps-of-the-workspace-share";

/// Passes its message on to the agent that its first word names.
const DESK: &str = r#"
[[agent]]
name = "Desk"
shell = true
command = '''
read -r agent text
printf %s "$text" | curl -sS -H "Authorization: Bearer $A2A_CALL_TOKEN" --data-binary @- "$A2A_CALL_URL/agents/$agent"
'''

[[agent]]
slug = "outside"
url = "OUTSIDE"

[agent.relay]
credential_env = "OUTSIDE_TOKEN"
"#;

const MAIL: &str = r#"
[[agent]]
name = "Mail"
shell = true
command = 'echo "for $A2A_PRINCIPAL of $A2A_TENANT, called by $A2A_SOURCE_AGENT: $(cat)"'
"#;

const OUTSIDE: &str = r#"
[server]
tokens_file = "tokens.txt"

[[agent]]
name = "Outside"
shell = true
command = 'echo "outside, for $A2A_PRINCIPAL: $(cat)"'
"#;

fn folder(root: &Path, name: &str, config: &str) -> std::path::PathBuf {
    let folder = root.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("switchboard.toml"), config).unwrap();
    folder
}

/// What the desk says to a message of Alice's.
fn asked(addr: SocketAddr, number: u32, text: &str) -> Value {
    let tokens = SignedTokens::new("alice@acme.example").with_secret(SECRET).with_org("acme.example", None::<String>);
    let body = json!({"message": {"messageId": format!("m-{number}"), "role": "ROLE_USER", "parts": [{"text": text}]}});
    let curl = Command::new("curl")
        .args(["-sS", "-H", "A2A-Version: 1.0", "-H", "Content-Type: application/json", "--data-binary"])
        .arg(body.to_string())
        .args(["-H", &format!("Authorization: Bearer {}", tokens.tokens_now()[0])])
        .arg(format!("http://{addr}/message:send"))
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&curl.stdout).unwrap();
    let parts = answer["task"]["artifacts"][0]["parts"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
    let text: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[test]
fn apps_of_a_workspace_call_each_other_by_name_and_for_their_users() {
    let root = tempfile::tempdir().unwrap();
    let (desk_addr, mail_addr, outside_addr) = (free_addr(), free_addr(), free_addr());

    let outside = folder(root.path(), "outside", OUTSIDE);
    std::fs::write(outside.join("tokens.txt"), "a-token-of-the-desk-for-tests desk").unwrap();
    let _outside = Server::start(&outside.join("data"), outside_addr);

    // An app below a path: its card and its addresses follow.
    let mail_url = format!("http://{mail_addr}/apps/mail");
    let mail = folder(root.path(), "mail", MAIL);
    let mut serve = command(&mail.join("data"), mail_addr);
    serve.args(["--public-url", &mail_url]).env("A2A_SECRET", SECRET);
    let _mail = Server::start_by(serve, mail_addr);
    let card = Command::new("curl").args(["-sS", &format!("{mail_url}/.well-known/agent-card.json")]).output().unwrap();
    let card: Value = serde_json::from_slice(&card.stdout).unwrap();
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    assert!(interfaces.iter().all(|place| place["url"].as_str().unwrap().starts_with(&mail_url)), "{card}");

    let desk = folder(root.path(), "desk", &DESK.replace("OUTSIDE\"\n\n", &format!("http://{outside_addr}\"\n\n")));
    let manifest = json!({"apps": [
        {"id": "mail", "path": "/apps/mail", "url": mail_url, "name": "Letters"},
        {"id": "desk", "path": "/apps/desk", "url": format!("http://{desk_addr}")},
    ]});
    std::fs::write(root.path().join("workspace-apps.json"), manifest.to_string()).unwrap();
    let mut serve = command(&desk.join("data"), desk_addr);
    serve.args(["--workspace"]).arg(root.path()).env("A2A_SECRET", SECRET);
    serve.env("AGENT_NATIVE_WORKSPACE_APP_ID", "desk").env("OUTSIDE_TOKEN", "a-token-of-the-desk-for-tests");
    let desk = Server::start_by(serve, desk_addr);

    for (number, name) in ["mail", "MAIL", "letters", "Letters"].into_iter().enumerate() {
        let answer = asked(desk_addr, u32::try_from(number).unwrap(), &format!("{name} hello"));
        assert_eq!(
            answer["text"], "for a2a-secret#alice@acme.example of acme.example, called by desk: hello\n",
            "{name}: {answer}"
        );
    }
    let unknown = asked(desk_addr, 10, "nobody hello");
    assert_eq!(
        unknown["error"], "UNKNOWN_AGENT: no agent is called \"nobody\"; there are: desk, outside, Letters",
        "this program is not among the apps: {unknown}"
    );
    let answer = asked(desk_addr, 11, "outside hello");
    assert_eq!(answer["text"], "outside, for desk: hello\n", "{answer}");
    desk.interrupt();
}
