//! The card for clients of every version at once, and the one for those who say that they speak 1.0.

use expect_test::expect;
use switchboard::{CardForm, Dialect, ProtocolBinding, Server, Tokens};
use switchboard_core::dialect::v0_3::proto::generated as v0_3;
use switchboard_core::dialect::v1_0::proto::generated as v1_0;

use crate::support::edge::{Answer, Edge, echo, get, unversioned, with};
use crate::support::grpc::{V0_3, V1_0, grpc_request};

const PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

async fn unversioned_card(edge: &Edge) -> Answer {
    edge.ask(unversioned(get(PATHS[0]))).await
}

#[tokio::test(start_paused = true)]
async fn the_members_of_all_versions_stand_side_by_side() {
    let tokens = Tokens::parse("a-token-of-alice-for-tests alice").unwrap();
    let edge = Edge::new(Server::builder().agent(echo()).tokens(tokens).public_url("https://agents.example/a2a"));
    let card = unversioned_card(&edge).await;
    expect![[r#"
        {
          "additionalInterfaces": [
            {
              "transport": "JSONRPC",
              "url": "https://agents.example/a2a/rpc"
            },
            {
              "transport": "HTTP+JSON",
              "url": "https://agents.example/a2a"
            }
          ],
          "authentication": {
            "schemes": [
              "Bearer"
            ]
          },
          "capabilities": {
            "extendedAgentCard": false,
            "extensions": [
              {
                "description": "A message with an Idempotency-Key may be sent again",
                "uri": "https://github.com/switchboard-a2a/switchboard/blob/main/docs/idempotent-sends.md"
              }
            ],
            "pushNotifications": true,
            "stateTransitionHistory": false,
            "streaming": true
          },
          "defaultInputModes": [
            "text/plain"
          ],
          "defaultOutputModes": [
            "text/plain"
          ],
          "description": "Says what it was told",
          "name": "Echo",
          "preferredTransport": "JSONRPC",
          "protocolVersion": "0.3.0",
          "security": [
            {
              "bearer": []
            }
          ],
          "securityRequirements": [
            {
              "schemes": {
                "bearer": {}
              }
            }
          ],
          "securitySchemes": {
            "bearer": {
              "description": "A token given out by the operator of this server",
              "httpAuthSecurityScheme": {
                "description": "A token given out by the operator of this server",
                "scheme": "Bearer"
              },
              "scheme": "Bearer",
              "type": "http"
            }
          },
          "skills": [
            {
              "description": "Repeats a text",
              "id": "echo",
              "name": "Echo",
              "tags": [
                "test"
              ]
            }
          ],
          "supportedInterfaces": [
            {
              "protocolBinding": "JSONRPC",
              "protocolVersion": "1.0",
              "url": "https://agents.example/a2a"
            },
            {
              "protocolBinding": "HTTP+JSON",
              "protocolVersion": "1.0",
              "url": "https://agents.example/a2a"
            },
            {
              "protocolBinding": "JSONRPC",
              "protocolVersion": "0.3",
              "url": "https://agents.example/a2a/rpc"
            },
            {
              "protocolBinding": "HTTP+JSON",
              "protocolVersion": "0.3",
              "url": "https://agents.example/a2a"
            }
          ],
          "supportsAuthenticatedExtendedCard": false,
          "url": "https://agents.example/a2a/rpc",
          "version": "1.0.0"
        }"#]]
    .assert_eq(&format!("{:#}", card.json()));
}

#[tokio::test(start_paused = true)]
async fn whoever_speaks_1_0_gets_the_card_of_1_0() {
    let edge = Edge::usual();
    for path in PATHS {
        let all = edge.ask(unversioned(get(path))).await;
        let old = edge.ask(with(unversioned(get(path)), "a2a-version", "0.3")).await;
        let new = edge.get(path).await;
        assert_eq!(all.body, old.body);
        assert!(all.json()["url"].is_string() && new.json()["url"].is_null());
        assert_eq!(all.json()["supportedInterfaces"], new.json()["supportedInterfaces"]);
        assert_ne!(all.header("etag"), new.header("etag"));
        for answer in [&all, &old, &new] {
            assert_eq!(answer.header("vary"), "a2a-version");
        }
        let known = with(unversioned(get(path)), "if-none-match", all.header("etag"));
        assert_eq!(edge.ask(known).await.status, 304);
        let other = with(get(path), "if-none-match", all.header("etag"));
        assert_eq!(edge.ask(other).await.status, 200, "the tag of another form");
    }
}

#[tokio::test(start_paused = true)]
async fn a_setting_makes_the_card_of_1_0_everybodys() {
    let edge = Edge::new(Server::builder().agent(echo()).card_form(CardForm::V1_0));
    assert_eq!(unversioned_card(&edge).await.body, edge.get(PATHS[0]).await.body);
    assert_eq!(edge.old_rpc("tasks/get", serde_json::json!({"id": "x"})).await.json()["error"]["code"], -32001);
}

#[tokio::test(start_paused = true)]
async fn what_no_version_means_for_calls_means_nothing_for_cards() {
    let edge = Edge::new(Server::builder().agent(echo()).default_version(Dialect::V1_0));
    assert!(unversioned_card(&edge).await.json()["url"].is_string());
}

#[tokio::test(start_paused = true)]
async fn every_declared_interface_answers() {
    let builder = Server::builder().agent(echo()).allow_unauthenticated(true).public_url("http://agents.example");
    let edge = Edge::new(builder.interfaces(ProtocolBinding::ALL));
    for path in ["", "/agents/echo"] {
        let card = edge.ask(unversioned(get(&format!("{path}{}", PATHS[0])))).await.json();
        for interface in card["supportedInterfaces"].as_array().unwrap() {
            let text = |name: &str| interface[name].as_str().unwrap();
            let at = text("url").trim_start_matches("http://").strip_prefix("agents.example").unwrap().to_owned();
            let request = match (text("protocolBinding"), text("protocolVersion")) {
                ("JSONRPC", "1.0") => post_rpc(&at, "GetTask", "1.0"),
                ("JSONRPC", "0.3") => post_rpc(&at, "tasks/get", ""),
                ("HTTP+JSON", "1.0") => get(&format!("{at}/tasks/x")),
                ("HTTP+JSON", "0.3") => unversioned(get(&format!("{at}/v1/tasks/x"))),
                ("GRPC", "1.0") if at == ":80" => {
                    let get = v1_0::GetTaskRequest { id: "x".to_owned(), ..Default::default() };
                    grpc_request(&format!("{V1_0}/GetTask"), &get)
                }
                ("GRPC", "0.3") if at == ":80" => {
                    let get = v0_3::GetTaskRequest { name: "tasks/x".to_owned(), ..Default::default() };
                    unversioned(grpc_request(&format!("{V0_3}/GetTask"), &get))
                }
                other => panic!("{other:?}"),
            };
            let answer = edge.ask(request).await;
            let found = answer.gist().ends_with("TASK_NOT_FOUND") || answer.header("grpc-status") == "5";
            assert!(found, "{interface}: {answer:?}");
        }
    }
}

fn post_rpc(at: &str, method: &str, version: &str) -> http::Request<http_body_util::Full<bytes::Bytes>> {
    let at = if at.is_empty() { "/" } else { at };
    let call = crate::support::edge::rpc_body(method, serde_json::json!({"id": "x"}));
    let request = unversioned(crate::support::edge::post(at, call));
    if version.is_empty() { request } else { with(request, "a2a-version", version) }
}
