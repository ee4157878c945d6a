//! More planted faults: those of capabilities that the usual server does not have, and of streams that are followed.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};
use serde_json::json;
use switchboard::{
    AgentBuilder, CardForm, KeyAlgorithm, Part, Replies, Server, ServerBuilder, SigningKeys, Skill, Tokens, Turn,
};

use super::broken::{Broken, GRPC, HTTP, RPC, answers, asks, streams};
use super::served::{ALL, Answered, Asked, demo, usual};

pub(super) const TOKEN: &str = "a-long-token-for-tests";

pub(super) fn minimal() -> ServerBuilder {
    Server::builder().agent(demo().streaming(false).push_notifications(false)).interfaces(ALL)
}

pub(super) fn with_tokens() -> ServerBuilder {
    let secret = Skill::new("secret", "Secret", "For those who are known").tag("secret");
    let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
    Server::builder().agent(demo().extended_skill(secret)).interfaces(ALL).tokens(tokens)
}

pub(super) fn with_extension() -> ServerBuilder {
    let agent = demo().extension("https://ext.example/v1", "must be named", true);
    Server::builder().agent(agent).interfaces(ALL).card_form(CardForm::V1_0)
}

pub(super) fn with_tenant() -> ServerBuilder {
    Server::builder().agent(demo()).interfaces(ALL).card_form(CardForm::V1_0).tenants(["acme"])
}

pub(super) fn messages() -> ServerBuilder {
    let agent = AgentBuilder::from_fn("Greeter", |turn: Turn| async move {
        turn.reply(vec![Part::text("hello")]).await?;
        Ok(())
    });
    Server::builder().agent(agent.traits(|traits| traits.with_replies(Replies::Message))).interfaces(ALL)
}

pub(super) fn signed() -> ServerBuilder {
    usual().signing_keys(SigningKeys::generate(KeyAlgorithm::Es256).unwrap())
}

/// Registers a webhook as a client of 0.3 does, so that it is posted in the form of 0.3.
fn register_in_0_3(asked: &mut Asked) {
    if asked.is("CreateTaskPushNotificationConfig") {
        asked.headers.remove("a2a-version");
        asked.edit(|json| {
            let config = json["params"].take();
            json["method"] = json!("tasks/pushNotificationConfig/set");
            let own = json!({ "id": config["id"], "url": config["url"] });
            json["params"] = json!({ "taskId": config["taskId"], "pushNotificationConfig": own });
        });
    }
}

/// Names the tenant on the interfaces of 1.0 and leaves out the others, which have none.
pub(super) fn tenant_on_the_card(asked: &Asked, answered: &mut Answered) {
    if asked.is_card() {
        answered.edit(|card| {
            let all = card["supportedInterfaces"].as_array_mut().unwrap();
            all.retain(|each| each["protocolVersion"] == "1.0");
            all.iter_mut().for_each(|each| each["tenant"] = json!("acme"));
        });
    }
}

/// How many subscriptions have been answered by the plant that changes every second one.
static SUBSCRIPTIONS: AtomicUsize = AtomicUsize::new(0);

pub(super) const STREAMS: &[Broken] = &[
    streams("a stream without events", "stream-opens", HTTP, |_, answered| answered.edit_events(Vec::clear)),
    streams("a message with something after it", "stream-message-alone", HTTP, |_, answered| {
        answered.edit_events(|events| events.push(json!({ "statusUpdate": {} })));
    })
    .of(messages),
    answers("a bad stream is answered with a result", "stream-refused-plainly", RPC, |asked, answered| {
        if asked.is("SendStreamingMessage") {
            answered.edit(|json| *json = json!({ "jsonrpc": "2.0", "id": json["id"], "result": {} }));
        }
    }),
    asks("streaming that is not declared is another call", "stream-not-declared", RPC, |asked| {
        if asked.is("SendStreamingMessage") {
            asked.edit(|json| json["method"] = json!("SendMessage"));
        }
    })
    .of(minimal),
    streams("a subscription that is cut off", "subscribe-ends", RPC, |asked, answered| {
        if asked.is("SubscribeToTask") {
            answered.edit_events(|events| events.truncate(1));
        }
    }),
    streams("subscribers see different things", "subscribe-alike", RPC, |asked, answered| {
        if asked.is("SubscribeToTask") && SUBSCRIPTIONS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            answered.edit_events(|events| {
                let last = events.len() - 1;
                events.remove(last - 1);
            });
        }
    }),
    asks("a client that leaves ends the task", "subscribe-leaving", RPC, |asked| {
        let is_second = || LEFT.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        if asked.is("SubscribeToTask") && is_second() {
            asked.edit(|json| json["method"] = json!("CancelTask"));
        }
    }),
    answers("another error for a subscription to nothing", "subscribe-unknown", RPC, |asked, answered| {
        if asked.is("SubscribeToTask") {
            answered.edit(|json| json["error"]["code"] = json!(-32004));
        }
    }),
];

pub(super) const PUSH: &[Broken] = &[
    answers("a configuration without an id", "push-create", RPC, |asked, answered| {
        if asked.is("CreateTaskPushNotificationConfig") {
            answered.edit(|json| drop(json["result"].as_object_mut().unwrap().remove("id")));
        }
    }),
    answers("another webhook than was registered", "push-get", HTTP, |asked, answered| {
        if asked.is("/pushNotificationConfigs/") && asked.method == Method::GET {
            answered.edit(|json| json["url"] = json!("https://example.org"));
        }
    }),
    answers("a configuration that does not exist is empty", "push-get-unknown", RPC, |asked, answered| {
        if asked.is("GetTaskPushNotificationConfig") {
            answered.edit(|json| *json = json!({ "jsonrpc": "2.0", "id": json["id"], "result": {} }));
        }
    }),
    answers("a deletion always fails the second time", "push-delete-twice", HTTP, |asked, answered| {
        // The first and the second one look alike, so the fault is told by the state of the server behind.
        if asked.method == Method::DELETE {
            let is_second = SECOND_DELETE.fetch_add(1, Ordering::Relaxed) % 2 == 1;
            if is_second {
                answered.status = StatusCode::NOT_FOUND;
            }
        }
    }),
    answers("a webhook of no task is taken", "push-unknown-task", RPC, |asked, answered| {
        if asked.is("CreateTaskPushNotificationConfig") {
            answered.edit(|json| *json = json!({ "jsonrpc": "2.0", "id": json["id"], "result": {} }));
        }
    }),
    asks("a webhook that is never posted", "push-delivered", RPC, |asked| {
        if asked.is("CreateTaskPushNotificationConfig") {
            asked.edit(|json| json["params"]["url"] = json!("https://example.com/elsewhere"));
        }
    }),
    asks("a webhook without its credentials", "push-delivered-credentials", RPC, |asked| {
        if asked.is("CreateTaskPushNotificationConfig") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("authentication")));
        }
    }),
    asks("a webhook in the form of 0.3", "push-delivered-payload", RPC, register_in_0_3),
    asks("a webhook with the content type of 0.3", "push-delivered-content-type", RPC, register_in_0_3),
    asks("a deletion after which webhooks go on", "push-delete-stops", RPC, |asked| {
        if asked.is("DeleteTaskPushNotificationConfig") {
            asked.edit(|json| json["method"] = json!("GetTaskPushNotificationConfig"));
        }
    }),
    answers("push that is not declared fails otherwise", "push-not-declared", RPC, |asked, answered| {
        if asked.is("CreateTaskPushNotificationConfig") {
            answered.edit(|json| json["error"]["code"] = json!(-32001));
        }
    })
    .of(minimal),
];

static LEFT: AtomicUsize = AtomicUsize::new(0);
static SECOND_DELETE: AtomicUsize = AtomicUsize::new(0);

pub(super) const OTHERS: &[Broken] = &[
    answers("a signature without a type", "card-signature-type", "card", |asked, answered| {
        if asked.is_card() {
            // {"alg":"ES256","kid":"k"}
            let signature = json!({ "protected": "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ", "signature": "AA" });
            answered.edit(|card| card["signatures"] = json!([signature]));
        }
    }),
    answers("a card that was changed after it was signed", "card-signature-verified", "card", |asked, answered| {
        if asked.is_card() && !asked.is("jwks") {
            answered.edit(|card| card["description"] = json!("another one"));
        }
    })
    .of(signed),
    answers("a card at the old path", "card-well-known", "card", |asked, answered| {
        if asked.path.contains("agent-card.json") {
            answered.status = StatusCode::NOT_FOUND;
        }
    }),
    answers("a card that is called a text", "card-content-type", "card", |asked, answered| {
        if asked.is_card() {
            answered.set("content-type", "text/plain");
        }
    }),
    answers("a card without interfaces", "card-interfaces", "card", |asked, answered| {
        if asked.is_card() {
            answered.edit(|card| card["supportedInterfaces"] = json!([]));
        }
    }),
    answers("a version with a patch number", "card-version-numbers", "card", |asked, answered| {
        if asked.is_card() {
            answered.edit(|card| card["supportedInterfaces"][0]["protocolVersion"] = json!("1.0.1"));
        }
    }),
    answers("a card without a tag", "card-etag", "card", |_, answered| drop(answered.headers.remove("etag"))),
    answers("a card without a date", "card-last-modified", "card", |_, answered| {
        answered.headers.remove("last-modified");
    }),
    answers("a context that is not that of the task", "send-context-inferred", RPC, |asked, answered| {
        if asked.json()["params"]["message"].get("taskId").is_some() {
            answered.edit(|json| json["result"]["task"]["contextId"] = json!("another"));
        }
    }),
    asks("a message without an id is given one", "send-no-message-id", RPC, |asked| {
        asked.edit(|json| {
            if json["params"]["message"].is_object() && json["params"]["message"].get("messageId").is_none() {
                json["params"]["message"]["messageId"] = json!("made-up");
            }
        });
    }),
    asks("historyLength of a send is ignored", "send-history-length", RPC, |asked| {
        if asked.is("SendMessage") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("configuration")));
        }
    }),
    answers("members that are null", "task-no-nulls", RPC, |asked, answered| {
        if asked.is("SendMessage") {
            answered.edit(|json| json["result"]["task"]["metadata"] = json!(null));
        }
    }),
    asks("historyLength 0 means all", "get-history-zero", RPC, |asked| {
        if asked.is("GetTask") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("historyLength")));
        }
    }),
    asks("a negative historyLength is taken", "get-history-negative", RPC, |asked| {
        if asked.is("GetTask") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("historyLength")));
        }
    }),
    answers("no history is kept", "get-history-kept", RPC, |asked, answered| {
        if asked.is("GetTask") {
            answered.edit(|json| drop(json["result"].as_object_mut().unwrap().remove("history")));
        }
    }),
    asks("includeArtifacts is ignored", "list-artifacts", RPC, |asked| {
        if asked.is("ListTasks") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("includeArtifacts")));
        }
    }),
    asks("historyLength of a list is ignored", "list-history", RPC, |asked| {
        if asked.is("ListTasks") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("historyLength")));
        }
    }),
    asks("a page of any size", "list-page-size", RPC, |asked| {
        if asked.is("ListTasks") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("pageSize")));
        }
    }),
    asks("any token is taken", "list-page-token", RPC, |asked| {
        if asked.is("ListTasks") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("pageToken")));
        }
    }),
    answers("unknown extensions are refused", "extension-unknown", RPC, |asked, answered| {
        if asked.headers.contains_key("a2a-extensions") {
            answered.edit(|json| json["error"] = json!({ "code": -32008, "message": "unknown extension" }));
        }
    }),
    asks("a required extension is not required", "extension-required", RPC, |asked| {
        drop(asked.headers.insert("a2a-extensions", "https://ext.example/v1".parse().unwrap()));
    })
    .of(with_extension),
    answers("an extended card that is none", "extended-card", RPC, |asked, answered| {
        if asked.is("GetExtendedAgentCard") {
            answered.edit(|json| json["result"] = json!({}));
        }
    })
    .of(with_tokens),
    asks("an extended card for anyone", "extended-card-secret", RPC, |asked| {
        drop(asked.headers.insert("authorization", format!("Bearer {TOKEN}").parse().unwrap()));
    })
    .of(with_tokens),
    answers("another error for an extended card", "extended-card-not-declared", RPC, |asked, answered| {
        if asked.is("GetExtendedAgentCard") {
            answered.edit(|json| json["error"]["code"] = json!(-32601));
        }
    }),
    asks("callers without credentials are served", "auth-required", GRPC, |asked| {
        drop(asked.headers.insert("authorization", format!("Bearer {TOKEN}").parse().unwrap()));
    })
    .of(with_tokens),
    answers("401 without a challenge", "auth-challenge", HTTP, |_, answered| {
        answered.headers.remove("www-authenticate");
    })
    .of(with_tokens),
    answers("the tenant of the card is refused", "tenant-accepted", RPC, |asked, answered| {
        tenant_on_the_card(asked, answered);
        if asked.is("GetTask") {
            answered.edit(|json| json["error"]["code"] = json!(-32602));
        }
    })
    .of(with_tenant),
    answers("an error without details over JSON-RPC", "jsonrpc-error-info", RPC, |asked, answered| {
        if asked.is("GetTask") {
            answered.edit(|json| drop(json["error"].as_object_mut().unwrap().remove("data")));
        }
    }),
    answers("another code for what is no request", "jsonrpc-no-request", RPC, |_, answered| {
        answered.edit(|json| {
            if json["error"]["code"] == -32600 {
                json["error"]["code"] = json!(-32603);
            }
        });
    }),
    asks("any content type is taken", "jsonrpc-wrong-content-type", RPC, |asked| {
        asked.headers.insert("content-type", "application/json".parse().unwrap());
    }),
    answers("application/json over HTTP+JSON", "http-content-type", HTTP, |asked, answered| {
        if asked.is("/message:send") {
            answered.set("content-type", "application/json");
        }
    }),
    answers("a result with the status of an error", "http-success-status", HTTP, |asked, answered| {
        if asked.is("/message:send") {
            answered.status = StatusCode::INTERNAL_SERVER_ERROR;
        }
    }),
    answers("500 for a body that is not JSON", "http-malformed", HTTP, |asked, answered| {
        if asked.is("/message:send") && answered.status == StatusCode::BAD_REQUEST {
            answered.status = StatusCode::INTERNAL_SERVER_ERROR;
        }
    }),
    answers("a page for every path", "http-unknown-path", HTTP, |asked, answered| {
        if asked.is("no-such-call") {
            answered.status = StatusCode::OK;
        }
    }),
    answers("an answer of gRPC that is not called one", "grpc-status", GRPC, |asked, answered| {
        if asked.path.ends_with("/GetTask") {
            answered.set("content-type", "text/html");
        }
    }),
    answers("another status for an unknown method", "grpc-unknown-method", GRPC, |asked, answered| {
        if asked.is("NoSuchMethod") {
            for headers in [&mut answered.headers, &mut answered.trailers] {
                if headers.contains_key("grpc-status") {
                    headers.insert("grpc-status", "13".parse().unwrap());
                }
            }
        }
    }),
    answers("an unknown task is one on another binding", "equal-errors", RPC, |asked, answered| {
        if asked.path.starts_with("/tasks/") {
            answered.status = StatusCode::OK;
        }
    }),
];
