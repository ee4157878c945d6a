//! Which protocol bindings a card names: the default, the settings, and what is wrong with them.

use serde_json::Value;
use switchboard::ProtocolBinding::{Grpc, HttpJson, JsonRpc};
use switchboard::{AgentBuilder, CardForm, ProtocolBinding, Server, ServerBuilder};

use crate::support::edge::{Edge, echo, get, unversioned};

const CARD: &str = "/.well-known/agent-card.json";

fn other() -> AgentBuilder {
    AgentBuilder::from_fn("Other", |_| async { Ok(()) })
}

/// The bindings and addresses of a version on the card of 1.0, and the same of 0.3 on the card of all versions.
async fn named(builder: ServerBuilder, path: &str) -> (Vec<String>, Vec<String>) {
    let edge = Edge::new(builder);
    let card = edge.ask(unversioned(get(&format!("{path}{CARD}")))).await.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_1_0 = |it: &&Value| it["protocolVersion"] == "1.0";
    let interfaces = card["supportedInterfaces"].as_array().unwrap().iter();
    let new = interfaces.filter(of_1_0).map(|it| format!("{} {}", text(&it["protocolBinding"]), text(&it["url"])));
    let old = card["additionalInterfaces"].as_array().cloned().unwrap_or_default();
    let old = old.iter().map(|it| format!("{} {}", text(&it["transport"]), text(&it["url"])));
    (new.collect(), old.collect())
}

fn server() -> ServerBuilder {
    Server::builder().allow_unauthenticated(true).agent(echo()).agent(other()).public_url("http://a.example:8080")
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_default_card_names_only_urls_that_google_adk_accepts() {
    let (new, old) = named(server(), "").await;
    assert_eq!(new, lines(&["JSONRPC http://a.example:8080", "HTTP+JSON http://a.example:8080"]));
    assert_eq!(old, lines(&["JSONRPC http://a.example:8080/rpc", "HTTP+JSON http://a.example:8080"]));
}

#[tokio::test(start_paused = true)]
async fn grpc_is_named_by_host_and_port_in_both_versions() {
    let (new, old) = named(server().interfaces([Grpc, JsonRpc]), "").await;
    assert_eq!(new, lines(&["GRPC a.example:8080", "JSONRPC http://a.example:8080"]));
    assert_eq!(old, lines(&["GRPC a.example:8080", "JSONRPC http://a.example:8080/rpc"]));
    let edge = Edge::new(server().interfaces([Grpc, JsonRpc]));
    let card = edge.ask(unversioned(get(CARD))).await.json();
    assert_eq!((&card["preferredTransport"], &card["url"]), (&"GRPC".into(), &"a.example:8080".into()));
}

#[tokio::test(start_paused = true)]
async fn the_card_of_1_0_alone_names_every_binding() {
    let (new, _) = named(server().card_form(CardForm::V1_0), "").await;
    let expected = ["JSONRPC http://a.example:8080", "HTTP+JSON http://a.example:8080", "GRPC a.example:8080"];
    assert_eq!(new, lines(&expected));
    let (new, _) = named(server().card_form(CardForm::V1_0).interfaces([HttpJson]), "").await;
    assert_eq!(new, lines(&["HTTP+JSON http://a.example:8080"]));
}

#[tokio::test(start_paused = true)]
async fn an_agents_own_list_outranks_the_servers() {
    let builder = Server::builder()
        .allow_unauthenticated(true)
        .agent(echo())
        .agent(other().interfaces([HttpJson]))
        .interfaces([JsonRpc, Grpc]);
    let (new, _) = named(builder, "/agents/other").await;
    assert_eq!(new, lines(&["HTTP+JSON http://127.0.0.1:8080/agents/other"]));
}

#[tokio::test(start_paused = true)]
async fn grpc_is_named_where_host_and_port_are_enough() {
    let grpc = async |public_url: &str, path: &str| {
        let builder = Server::builder()
            .allow_unauthenticated(true)
            .agent(echo())
            .agent(other())
            .card_form(CardForm::V1_0)
            .public_url(public_url);
        let (new, _) = named(builder, path).await;
        new.iter().filter_map(|line| line.strip_prefix("GRPC ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(grpc("https://a.example", "").await, ["a.example:443"]);
    assert_eq!(grpc("http://a.example:8080/", "").await, ["a.example:8080"]);
    assert_eq!(grpc("http://[::1]", "").await, ["[::1]:80"]);
    assert_eq!(grpc("https://a.example", "/agents/echo").await, ["a.example:443"], "the same agent");
    assert_eq!(grpc("https://a.example", "/agents/other").await, [""; 0], "another one would answer");
    assert_eq!(grpc("https://a.example/a2a", "").await, [""; 0], "gRPC knows no path");
}

#[tokio::test]
async fn a_list_that_cannot_be_is_refused_with_the_reason() {
    let why = |builder: ServerBuilder| builder.build().err().map_or(String::new(), |error| error.to_string());
    let cases: [(ServerBuilder, &str); 6] = [
        (server().interfaces([]), "interfaces: the list is empty; name at least one of JSONRPC, HTTP+JSON, GRPC"),
        (server().interfaces([JsonRpc, Grpc, JsonRpc]), "interfaces: JSONRPC is named twice"),
        (
            Server::builder()
                .allow_unauthenticated(true)
                .agent(echo())
                .public_url("https://a.example/a2a")
                .interfaces([JsonRpc, Grpc]),
            "interfaces: GRPC is named, and gRPC clients cannot send the path /a2a of the public URL",
        ),
        (
            Server::builder().allow_unauthenticated(true).agent(echo()).agent(other().interfaces([Grpc])),
            "interfaces: agent \"other\" names GRPC, which reaches only the first agent",
        ),
        (
            server().interfaces([Grpc]),
            "interfaces: the card of agent \"other\" would name no interface, because GRPC reaches only the first agent",
        ),
        (server().interfaces([JsonRpc, HttpJson, Grpc]), ""),
    ];
    for (builder, expected) in cases {
        let why = why(builder);
        assert!(why.starts_with(expected) && why.is_empty() == expected.is_empty(), "{why}");
    }
}

#[test]
fn bindings_are_read_by_the_names_on_a_card() {
    for binding in ProtocolBinding::ALL {
        assert_eq!(binding.to_string().parse(), Ok(binding));
        assert_eq!(binding.to_string().to_lowercase().parse(), Ok(binding));
    }
    let unknown = "REST".parse::<ProtocolBinding>().unwrap_err();
    assert_eq!(unknown, "\"REST\" is not a protocol binding; there are JSONRPC, HTTP+JSON, GRPC");
}
