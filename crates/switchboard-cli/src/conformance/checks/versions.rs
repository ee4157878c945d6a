//! Checks of the service parameters: `A2A-Version` and `A2A-Extensions`.

use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::super::bench::{
    Bench, Checked, EXTENSION_REQUIRED, TASK_NOT_FOUND, VERSION_NOT_SUPPORTED, fault, hold, message, shown_json,
};
use super::super::check::{Check, Needs, V1};
use super::super::wire::{Binding, Meaning, Operation, Options, Version, VersionHeader};
use super::{each, must};

pub(super) const CHECKS: &[Check] = &[
    must(
        "version-unsupported",
        "VER-SERVER-002",
        "3.6.2",
        V1,
        "A version that the interface does not support MUST give VersionNotSupportedError.",
        each!(unsupported),
    ),
    must(
        "version-patch",
        "VER-CLIENT-002",
        "3.6",
        V1,
        "Patch numbers MUST NOT be considered when versions are negotiated.",
        each!(patch),
    ),
    must(
        "version-absent",
        "VER-SERVER-003",
        "3.6.2",
        V1,
        "A call without a version MUST be taken as one of 0.3: refused where 0.3 is not offered, and never answered as 1.0.",
        each!(absent),
    ),
    must(
        "extension-unknown",
        "JSONRPC-SVC-002, HTTP_JSON-SVC-002, GRPC-META-001",
        "3.2.6, 4.6",
        V1,
        "Service parameters are read from headers or metadata, and an extension that the agent does not know is ignored.",
        each!(extension_unknown),
    ),
    must(
        "extension-required",
        "CORE-CAP-004",
        "3.3.4",
        V1,
        "A client that does not name a required extension MUST get ExtensionSupportRequiredError.",
        each!(extension_required),
    )
    .needs(Needs::RequiredExtension),
];

async fn unsupported(bench: &Bench<'_>) -> Checked {
    let options = Options { version: VersionHeader::Text("99.0"), ..Options::default() };
    let reply = bench.call_with(Operation::Get, json!({ "id": super::super::fresh_id() }), &options).await?;
    bench.refused(&reply, &[&VERSION_NOT_SUPPORTED]).map(drop)
}

async fn patch(bench: &Bench<'_>) -> Checked {
    let options = Options { version: VersionHeader::Text("1.0.1"), ..Options::default() };
    let reply = bench.call_with(Operation::Get, json!({ "id": super::super::fresh_id() }), &options).await?;
    bench.refused(&reply, &[&TASK_NOT_FOUND]).map(drop)
}

/// A call in the form of 1.0 that does not name its version is one of 0.3. An interface that does not offer 0.3 refuses it. One that
/// does may refuse it, too, or answer in the form of 0.3.
async fn absent(bench: &Bench<'_>) -> Checked {
    let options = Options { version: VersionHeader::Absent, ..Options::default() };
    let params = json!({ "message": message(&bench.texts.plain) });
    let reply = bench.call_with(Operation::Send, params, &options).await?;
    let answer = match &reply.meaning {
        Meaning::Refused(_) => return Ok(()),
        Meaning::Nothing(_) => return Err(fault("VersionNotSupportedError, or another error", reply.shown())),
        Meaning::Result(answer) => answer,
    };
    if !offers_older(bench) {
        return Err(fault("VersionNotSupportedError, because the card does not offer 0.3 here", reply.shown()));
    }
    match bench.to.binding {
        // The methods of 1.0 have names that 0.3 does not know.
        Binding::JsonRpc => Err(fault("an error, because 0.3 has no such method", reply.shown())),
        Binding::HttpJson => hold(!has_messages_of_v1(answer), "an error, or an answer in the form of 0.3", || {
            format!("an answer in the form of 1.0: {}", shown_json(answer))
        }),
        // A text looks the same in the protobuf messages of both versions. A list tells: the protobuf service of 0.3 has none.
        Binding::Grpc => {
            let listed = bench.call_with(Operation::List, json!({}), &options).await?;
            match &listed.meaning {
                Meaning::Refused(_) => Ok(()),
                Meaning::Result(_) | Meaning::Nothing(_) => {
                    Err(fault("ListTasks refused, because the service of 0.3 has no such call", listed.shown()))
                }
            }
        }
    }
}

/// Whether the card offers a version before 1.0 at the same place.
fn offers_older(bench: &Bench<'_>) -> bool {
    let place = |url: &str| url.trim_end_matches('/').trim_end_matches("/v1").to_owned();
    let here = place(&bench.to.url);
    let mut all = bench.all.iter().chain(&bench.card.left_out);
    all.any(|it| it.binding == bench.to.binding && it.version != Version::V1_0 && place(&it.url) == here)
}

/// Whether a message in an answer to a send is spelled as in 1.0: with `parts`, which 0.3 calls `content` over this binding, and
/// without the `kind` that 0.3 has elsewhere.
fn has_messages_of_v1(answer: &Value) -> bool {
    let task = &answer["task"];
    let history = task["history"].as_array().into_iter().flatten();
    let mut messages = history.chain([&answer["message"], &task["status"]["message"]]);
    messages.any(|message| message["parts"].is_array() && message["kind"].is_null())
}

async fn extension_unknown(bench: &Bench<'_>) -> Checked {
    let own = &bench.wire.extensions;
    let named = if own.is_empty() { UNKNOWN.to_owned() } else { format!("{own}, {UNKNOWN}") };
    let value = HeaderValue::from_str(&named).map_err(|_| fault("extensions that fit a header", named))?;
    let options = Options { headers: vec![(HeaderName::from_static("a2a-extensions"), value)], ..Options::default() };
    let reply = bench.call_with(Operation::Get, json!({ "id": super::super::fresh_id() }), &options).await?;
    bench.refused(&reply, &[&TASK_NOT_FOUND]).map(drop)
}

const UNKNOWN: &str = "https://example.com/extensions/switchboard-conformance/v1";

async fn extension_required(bench: &Bench<'_>) -> Checked {
    let options = Options { without_extensions: true, ..Options::default() };
    let params = json!({ "message": message(&bench.texts.plain) });
    let reply = bench.call_with(Operation::Send, params, &options).await?;
    bench.refused(&reply, &[&EXTENSION_REQUIRED]).map(drop)
}
