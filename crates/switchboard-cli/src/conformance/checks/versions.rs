//! Checks of the service parameters: `A2A-Version` and `A2A-Extensions`.

use http::{HeaderName, HeaderValue};
use serde_json::json;

use super::super::bench::{Bench, Checked, EXTENSION_REQUIRED, TASK_NOT_FOUND, VERSION_NOT_SUPPORTED, fault, message};
use super::super::catalog::{Check, Needs, V1};
use super::super::wire::{Meaning, Operation, Options, VersionHeader};
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
        "Agents MUST interpret an empty version as 0.3, so that a call of 1.0 without one is not answered as 1.0.",
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

async fn absent(bench: &Bench<'_>) -> Checked {
    let options = Options { version: VersionHeader::Absent, ..Options::default() };
    let params = json!({ "message": message(&bench.texts.plain) });
    let reply = bench.call_with(Operation::Send, params, &options).await?;
    match &reply.meaning {
        Meaning::Refused(_) => Ok(()),
        Meaning::Result(_) | Meaning::Nothing(_) => {
            Err(fault("VersionNotSupportedError, or another error", reply.shown()))
        }
    }
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
