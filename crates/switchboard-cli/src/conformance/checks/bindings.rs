//! Checks of what each binding asks for beside the operations: envelopes, media types, errors and their details.

use serde_json::{Value, json};

use super::super::bench::{
    Bench, Checked, Finding, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, fault, hold, shown_head, shown_json,
};
use super::super::check::{Check, EVERYWHERE, GRPC, GRPC_V1, HTTP_JSON, HTTP_JSON_V1, JSONRPC, JSONRPC_V1};
use super::super::wire::http::{http_json_meaning, jsonrpc_meaning};
use super::super::wire::{Binding, Meaning, Operation, Options, Raw, Refused, Reply, Version, shown};
use super::{each, may, must, should};

pub(super) const CHECKS: &[Check] = &[
    must(
        "interface-answers",
        "BIND-FIELD-001",
        "5.2, 8.3",
        EVERYWHERE,
        "The card MUST declare its interfaces accurately: a declared one answers calls of its version.",
        each!(interface_answers),
    ),
    must(
        "error-message",
        "CORE-ERR-001",
        "3.3.2",
        EVERYWHERE,
        "Errors MUST have a code and a message for people.",
        each!(error_message),
    ),
    must(
        "jsonrpc-envelope",
        "JSONRPC-FMT-001",
        "9.1",
        JSONRPC,
        "Answers MUST be JSON-RPC 2.0 responses with the id of the request, a number or a text as it came.",
        each!(envelope),
    ),
    must(
        "jsonrpc-content-type",
        "JSONRPC-FMT-002",
        "9.1",
        JSONRPC,
        "The content type of an answer MUST be application/json.",
        each!(jsonrpc_content_type),
    ),
    must(
        "jsonrpc-error-object",
        "JSONRPC-ERR-001",
        "9.5",
        JSONRPC,
        "An error MUST be a JSON-RPC error object: a number as code, a text as message, and no result beside it.",
        each!(error_object),
    ),
    should(
        "jsonrpc-error-info",
        "JSONRPC-ERR-003",
        "9.5",
        JSONRPC_V1,
        "data is a list of objects with @type, of which one SHOULD be an ErrorInfo with reason and domain.",
        each!(error_info),
    ),
    must(
        "jsonrpc-malformed",
        "JSONRPC-SSE-002",
        "9.5",
        JSONRPC,
        "A body that is not JSON gives the error -32700.",
        each!(malformed),
    ),
    must(
        "jsonrpc-no-request",
        "JSONRPC-SSE-002",
        "9.5",
        JSONRPC,
        "JSON that is no request gives the error -32600.",
        each!(no_request),
    ),
    must(
        "jsonrpc-unknown-method",
        "JSONRPC-SSE-002",
        "9.5",
        JSONRPC,
        "A method that does not exist gives the error -32601.",
        each!(unknown_method),
    ),
    may(
        "jsonrpc-wrong-content-type",
        "JSONRPC-ERR-002",
        "9.1, 13.4",
        JSONRPC,
        "A request whose content type is not JSON may be refused.",
        each!(wrong_content_type),
    ),
    should(
        "http-content-type",
        "HTTP_JSON-SVC-001",
        "11.1",
        HTTP_JSON_V1,
        "The media type application/a2a+json SHOULD be used.",
        each!(http_content_type),
    ),
    must(
        "http-success-status",
        "HTTP_JSON-STATUS-001",
        "11.3",
        HTTP_JSON,
        "A call that succeeds is answered with a status of 2xx.",
        each!(success_status),
    ),
    must(
        "http-error-body",
        "HTTP_JSON-ERR-001",
        "11.6",
        HTTP_JSON_V1,
        "The body of an error MUST be {\"error\": {code, status, message, details}}, whose code is the HTTP status.",
        each!(error_body),
    ),
    must(
        "http-error-info",
        "HTTP_JSON-ERR-002",
        "11.6",
        HTTP_JSON_V1,
        "The details of an A2A error MUST hold an ErrorInfo with its reason and the domain a2a-protocol.org.",
        each!(error_info),
    ),
    must(
        "http-malformed",
        "HTTP_JSON-STATUS-001",
        "11.6",
        HTTP_JSON,
        "A body that is not JSON gives the status 400.",
        each!(http_malformed),
    ),
    must(
        "http-unknown-path",
        "HTTP_JSON-STATUS-001",
        "11.3",
        HTTP_JSON,
        "A path that does not exist gives an error.",
        each!(unknown_path),
    ),
    must(
        "grpc-status",
        "GRPC-SVC-001, GRPC-SVC-002",
        "10.1, 10.3",
        GRPC,
        "Calls are served by the service of their version, with HTTP 200, application/grpc and a grpc-status.",
        each!(grpc_status),
    ),
    must(
        "grpc-error-info",
        "GRPC-ERR-001",
        "10.6",
        GRPC_V1,
        "The status details of an A2A error MUST hold an ErrorInfo with its reason and the domain a2a-protocol.org.",
        each!(error_info),
    ),
    must(
        "grpc-unknown-method",
        "GRPC-ERR-002",
        "10.6",
        GRPC,
        "A method that does not exist gives UNIMPLEMENTED.",
        each!(grpc_unknown_method),
    ),
];

async fn interface_answers(bench: &Bench<'_>) -> Checked {
    let reply = bench.unknown().await?;
    let is_a2a = match (&reply.meaning, bench.to.binding) {
        (Meaning::Refused(refused), Binding::HttpJson) => refused.json.is_object(),
        (Meaning::Refused(_) | Meaning::Result(_), _) => true,
        (Meaning::Nothing(_), _) => false,
    };
    hold(is_a2a, &format!("an answer of {}", bench.to), || reply.raw.shown())
}

/// The error about a task that does not exist.
async fn refused<'b>(bench: &'b Bench<'_>) -> Result<(&'b Reply, &'b Refused), Finding> {
    let reply = bench.unknown().await?;
    match &reply.meaning {
        Meaning::Refused(refused) => Ok((reply, refused)),
        Meaning::Result(_) | Meaning::Nothing(_) => Err(fault("an error", reply.shown())),
    }
}

async fn error_message(bench: &Bench<'_>) -> Checked {
    let (_, refused) = refused(bench).await?;
    hold(!refused.message.trim().is_empty(), "a message", || shown_json(&refused.json))
}

async fn envelope(bench: &Bench<'_>) -> Checked {
    for id in [json!("text"), json!(7)] {
        let options = Options { rpc_id: Some(id.clone()), ..Options::default() };
        let reply = bench.call_with(Operation::Get, json!({ "id": super::super::fresh_id() }), &options).await?;
        let body: Value = serde_json::from_slice(&reply.raw.body).unwrap_or_default();
        hold(body["jsonrpc"] == "2.0", "jsonrpc: \"2.0\"", || reply.raw.shown())?;
        hold(body.get("id") == Some(&id), &format!("id: {id}"), || {
            body.get("id").map_or_else(|| "no id".to_owned(), shown_json)
        })?;
    }
    Ok(())
}

async fn jsonrpc_content_type(bench: &Bench<'_>) -> Checked {
    let reply = bench.sent().await?;
    hold(reply.raw.media_type() == "application/json", "Content-Type: application/json", || shown_head(&reply.raw))
}

async fn error_object(bench: &Bench<'_>) -> Checked {
    let (reply, refused) = refused(bench).await?;
    hold(refused.json["code"].is_i64(), "code, a number", || shown_json(&refused.json))?;
    hold(refused.json["message"].is_string(), "message, a text", || shown_json(&refused.json))?;
    let body: Value = serde_json::from_slice(&reply.raw.body).unwrap_or_default();
    let has_result = body.get("result").is_some_and(|result| !result.is_null());
    hold(!has_result, "no result beside an error", || reply.raw.shown())
}

async fn error_info(bench: &Bench<'_>) -> Checked {
    let (_, refused) = refused(bench).await?;
    let (reason, domain) = (refused.reason.as_deref(), refused.domain.as_deref());
    let is_right = reason == Some("TASK_NOT_FOUND") && domain == Some("a2a-protocol.org");
    hold(is_right, "an ErrorInfo with the reason TASK_NOT_FOUND and the domain a2a-protocol.org", || {
        shown_json(&refused.json)
    })
}

/// A body of any kind, and what the answer to it means.
async fn posted(bench: &Bench<'_>, path: &str, media_type: &'static str, body: String) -> Result<Reply, Finding> {
    let posted = bench.wire.post(bench.to, path, media_type, body, &Options::default()).await;
    let raw: Raw = posted.map_err(|why| fault("an answer", why))?;
    let meaning = match bench.to.binding {
        Binding::JsonRpc => jsonrpc_meaning(&raw, false),
        Binding::HttpJson | Binding::Grpc => http_json_meaning(&raw),
    };
    Ok(Reply { raw, meaning })
}

async fn malformed(bench: &Bench<'_>) -> Checked {
    let reply = posted(bench, "", "application/json", "{\"jsonrpc\": \"2.0\", ".to_owned()).await?;
    bench.refused(&reply, &[&PARSE_ERROR]).map(drop)
}

async fn no_request(bench: &Bench<'_>) -> Checked {
    let reply = posted(bench, "", "application/json", json!({ "id": 1, "params": {} }).to_string()).await?;
    bench.refused(&reply, &[&INVALID_REQUEST]).map(drop)
}

async fn unknown_method(bench: &Bench<'_>) -> Checked {
    let method = if bench.to.version == Version::V1_0 { "SwitchboardNoSuchMethod" } else { "switchboard/noSuchMethod" };
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {} });
    let reply = posted(bench, "", "application/json", body.to_string()).await?;
    bench.refused(&reply, &[&METHOD_NOT_FOUND]).map(drop)
}

async fn wrong_content_type(bench: &Bench<'_>) -> Checked {
    let method = super::super::wire::http::method(bench.to.version, Operation::Get);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "id": super::super::fresh_id() } });
    let reply = posted(bench, "", "text/plain", body.to_string()).await?;
    let is_accepted = matches!(&reply.meaning, Meaning::Refused(refused) if refused.code == -32001);
    hold(!is_accepted, "a refusal", || "the request was accepted, which is allowed".to_owned())
}

async fn http_content_type(bench: &Bench<'_>) -> Checked {
    let reply = bench.sent().await?;
    hold(reply.raw.media_type() == "application/a2a+json", "Content-Type: application/a2a+json", || {
        shown_head(&reply.raw)
    })
}

async fn success_status(bench: &Bench<'_>) -> Checked {
    let reply = bench.sent().await?;
    hold((200..300).contains(&reply.raw.status), "a status of 2xx", || reply.raw.shown())
}

async fn error_body(bench: &Bench<'_>) -> Checked {
    let (reply, refused) = refused(bench).await?;
    let error = &refused.json["error"];
    hold(error.is_object(), "the member error", || reply.raw.shown())?;
    hold(error["code"] == reply.raw.status, &format!("code: {}", reply.raw.status), || shown_json(&error["code"]))?;
    hold(error["status"].is_string(), "status, a text", || shown_json(error))?;
    hold(error["message"].is_string(), "message, a text", || shown_json(error))?;
    let is_json = matches!(reply.raw.media_type().as_str(), "application/json" | "application/a2a+json");
    hold(is_json, "a media type of JSON", || shown_head(&reply.raw))
}

async fn http_malformed(bench: &Bench<'_>) -> Checked {
    let reply = posted(bench, "/message:send", "application/json", "{\"message\": ".to_owned()).await?;
    hold(reply.raw.status == 400, "HTTP 400", || reply.raw.shown())
}

async fn unknown_path(bench: &Bench<'_>) -> Checked {
    let reply = posted(bench, "/message:switchboard-no-such-call", "application/json", "{}".to_owned()).await?;
    // Some frameworks redirect to the same path with a slash first.
    hold((300..500).contains(&reply.raw.status), "a status of 4xx", || reply.raw.shown())
}

async fn grpc_status(bench: &Bench<'_>) -> Checked {
    let reply = bench.unknown().await?;
    hold(reply.raw.status == 200, "HTTP 200", || reply.raw.shown())?;
    hold(reply.raw.media_type().starts_with("application/grpc"), "application/grpc", || shown_head(&reply.raw))?;
    let is_number = reply.raw.header("grpc-status").parse::<u8>().is_ok();
    hold(is_number, "grpc-status", || shown(reply.raw.header("grpc-status")))
}

#[cfg(feature = "grpc")]
async fn grpc_unknown_method(bench: &Bench<'_>) -> Checked {
    let called = bench.wire.call_grpc_method(bench.to, "SwitchboardNoSuchMethod", &Options::default()).await;
    let reply = called.map_err(|why| fault("an answer", why))?;
    let code = match &reply.meaning {
        Meaning::Refused(refused) => Some(refused.code),
        Meaning::Result(_) | Meaning::Nothing(_) => None,
    };
    hold(code == Some(12), "UNIMPLEMENTED (12)", || reply.shown())
}

#[cfg(not(feature = "grpc"))]
async fn grpc_unknown_method(_: &Bench<'_>) -> Checked {
    Err(super::super::bench::skip("this build has no gRPC"))
}
