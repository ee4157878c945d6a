//! Who is understood where: a send in each spelling, and in mixtures of them, at each place. It is understood as it was
//! meant, or refused in the words of the place; never read as something else.

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};
use switchboard::{CorvidOptions, Server};

use crate::support::edge::{Edge, echo, message, old_message, post, unversioned, with};
use crate::support::shapes::{Refusal, refusal, task};

/// A place with a name for its column, the version that a request names there, and how that place refuses.
const PLACES: [(&str, &str, &str, &[Refusal]); 13] = [
    ("rpc -", "/rpc", "", &[Refusal::Rpc0_3, Refusal::Rpc1_0, Refusal::RpcPlain]),
    ("rpc 0.3", "/rpc", "0.3", &[Refusal::Rpc0_3, Refusal::Rpc1_0]),
    ("rpc 1.0", "/rpc", "1.0", &[Refusal::Rpc1_0]),
    ("rpc 9.9", "/rpc", "9.9", &[Refusal::Rpc0_3, Refusal::Rpc1_0]),
    ("http -", "/message:send", "", &[Refusal::Http1_0]),
    ("http 1.0", "/message:send", "1.0", &[Refusal::Http1_0]),
    ("/v1 -", "/v1/message:send", "", &[Refusal::Http0_3]),
    ("/v1 1.0", "/v1/message:send", "1.0", &[Refusal::Http1_0]),
    ("/v1 9.9", "/v1/message:send", "9.9", &[Refusal::Http0_3]),
    ("a-native", "/dialects/agent-native/a2a", "", &[Refusal::RpcPlain]),
    ("selec.", "/dialects/selectools/a2a", "", &[Refusal::RpcPlain]),
    ("corvid", "/dialects/corvid/a2a/tasks/send", "", &[Refusal::Text]),
    ("NEXUS", "/dialects/nexus/rpc", "", &[Refusal::RpcPlain]),
];

fn call(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Sends of the text `hello`, and what each is.
fn sends() -> Vec<(&'static str, Value)> {
    let said = |parts: Value| json!({"message": {"role": "user", "parts": parts}});
    let typed = said(json!([{"type": "text", "text": "hello"}]));
    let in_data = said(json!([{"type": "text", "data": "hello"}]));
    let in_content = json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hello"}]}});
    let with_parts = |mut params: Value, parts: Value| {
        params["message"]["parts"] = parts;
        params
    };
    let both = json!([{"kind": "text", "text": "hello"}, {"url": "https://files.example/", "mediaType": "text/plain"}]);
    let mut two_names = message("hello");
    two_names["message"]["content"] = json!([{"text": "something else"}]);
    vec![
        ("1.0", call("SendMessage", message("hello"))),
        ("1.0 without its envelope", message("hello")),
        ("0.3", call("message/send", old_message("hello"))),
        ("0.3 without its envelope", old_message("hello")),
        ("0.3's proto", in_content.clone()),
        ("0.3's proto in an envelope", call("message/send", in_content)),
        ("agent-native", call("message/send", typed)),
        ("selectools", call("tasks/send", old_message("hello"))),
        ("corvid", json!({"params": {"message": "hello"}})),
        ("NEXUS", call("message/send", in_data)),
        ("1.0's method, 0.3's message", call("SendMessage", old_message("hello"))),
        ("0.3's method, 1.0's message", call("message/send", message("hello"))),
        ("0.3's method, 1.0's part", call("message/send", with_parts(old_message("hello"), both.clone()))),
        ("1.0's method, 0.3's part", call("SendMessage", with_parts(message("hello"), both))),
        ("1.0 with 0.3's parts beside", call("SendMessage", two_names)),
        ("a method of nobody", call("message/shout", old_message("hello"))),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_send_is_understood_as_it_was_meant_or_refused_in_the_words_of_the_place() {
    let mut corvid = CorvidOptions::default();
    corvid.sends_per_min = 1_000;
    let edge = Edge::new(Server::builder().agent(echo().compat(|compat| {
        compat.default_project = true;
        compat.corvid = corvid;
    })));
    let mut table = format!("{:<27}", "");
    for (place, ..) in PLACES {
        write!(table, " {place:<8}").unwrap();
    }
    for (name, body) in sends() {
        write!(table, "\n{name:<27}").unwrap();
        for (place, path, version, refusals) in PLACES {
            let request = with(unversioned(post(path, body.to_string())), "a2a-version", version);
            let answer = edge.ask(request).await;
            let outcome = match task(&answer) {
                Some((dialect, said)) => {
                    assert_eq!(said, "hello", "{name} at {place} was misunderstood: {answer:?}");
                    format!("yes {dialect:.4}")
                }
                None => {
                    let (form, code) = refusal(&answer).unwrap_or_else(|why| panic!("{name} at {place}: {why}"));
                    assert!(refusals.contains(&form), "{name} at {place}: {answer:?}");
                    code.to_string()
                }
            };
            write!(table, " {outcome:<8}").unwrap();
        }
    }
    // A cell has the dialect of the answer, or the number of the refusal; `-` is no version.
    let table: Vec<_> = table.lines().map(str::trim_end).collect();
    // Members that a version does not know are not looked at, so a `kind` does not make a part of 1.0 another one, nor is
    // what stands beside its parts read. Selectools keeps parts that it does not know.
    expect![[r#"
                                    rpc -    rpc 0.3  rpc 1.0  rpc 9.9  http -   http 1.0 /v1 -    /v1 1.0  /v1 9.9  a-native selec.   corvid   NEXUS
        1.0                         -32009   -32009   yes 1.0  -32009   400      400      -32602   404      -32009   -32601   -32601   400      -32601
        1.0 without its envelope    -32600   -32600   -32600   -32600   400      yes 1.0  -32602   404      -32009   -32600   -32600   400      -32600
        0.3                         yes 0.3  yes 0.3  -32601   -32009   400      400      -32602   404      -32009   yes agen yes sele 400      -32602
        0.3 without its envelope    -32600   -32600   -32600   -32600   400      400      -32602   404      -32009   -32600   -32600   400      -32600
        0.3's proto                 -32600   -32600   -32600   -32600   400      400      yes 0.3  404      -32009   -32600   -32600   400      -32600
        0.3's proto in an envelope  -32602   -32602   -32601   -32009   400      400      -32602   404      -32009   -32602   -32602   400      -32602
        agent-native                yes agen yes 0.3  -32601   -32009   400      400      -32602   404      -32009   yes agen -32602   400      -32602
        selectools                  yes sele yes 0.3  -32601   -32009   400      400      -32602   404      -32009   -32601   yes sele 400      -32601
        corvid                      -32600   -32600   -32600   -32600   400      400      -32602   404      -32009   -32600   -32600   yes corv -32600
        NEXUS                       yes NEXU -32602   -32601   -32009   400      400      -32602   404      -32009   -32602   -32602   400      yes NEXU
        1.0's method, 0.3's message -32009   -32009   -32602   -32009   400      400      -32602   404      -32009   -32601   -32601   400      -32601
        0.3's method, 1.0's message -32602   -32602   -32601   -32009   400      400      -32602   404      -32009   -32602   -32602   400      -32602
        0.3's method, 1.0's part    yes 0.3  yes 0.3  -32601   -32009   400      400      -32602   404      -32009   -32602   yes sele 400      -32602
        1.0's method, 0.3's part    -32009   -32009   yes 1.0  -32009   400      400      -32602   404      -32009   -32601   -32601   400      -32601
        1.0 with 0.3's parts beside -32009   -32009   yes 1.0  -32009   400      400      -32602   404      -32009   -32601   -32601   400      -32601
        a method of nobody          -32601   -32601   -32601   -32009   400      400      -32602   404      -32009   -32601   -32601   400      -32601"#]].assert_eq(&table.join("\n"));
}
