//! Checks of what callers may see: the extended card, calls without credentials, tenants.

use serde_json::json;

use super::super::bench::{
    Bench, Checked, NO_EXTENDED_CARD, TASK_NOT_FOUND, UNSUPPORTED_OPERATION, fault, hold, shown_json, skip, text_of,
};
use super::super::check::{Check, EVERYWHERE, JSON, Needs, V1};
use super::super::wire::{Binding, Meaning, Operation, Options, Reply};
use super::{each, must, should};

pub(super) const CHECKS: &[Check] = &[
    must(
        "extended-card",
        "CARD-EXT-001, CARD-EXT-002",
        "3.1.11",
        EVERYWHERE,
        "GetExtendedAgentCard returns a card, or ExtendedAgentCardNotConfiguredError.",
        each!(extended_card),
    )
    .needs(Needs::ExtendedCard),
    must(
        "extended-card-secret",
        "CARD-EXT-001",
        "13.3",
        V1,
        "GetExtendedAgentCard MUST require authentication.",
        each!(extended_card_secret),
    )
    .needs(Needs::ExtendedCard),
    must(
        "extended-card-not-declared",
        "CORE-CAP-003",
        "3.3.4",
        V1,
        "Without the capability, GetExtendedAgentCard MUST give UnsupportedOperationError.",
        each!(not_declared),
    )
    .needs(Needs::NoExtendedCard),
    must(
        "auth-required",
        "AUTH-SERVER-002",
        "7.4",
        EVERYWHERE,
        "The server MUST authenticate every request: one without credentials is refused.",
        each!(auth_required),
    )
    .needs(Needs::Credentials),
    should(
        "auth-challenge",
        "AUTH-SERVER-002",
        "3.3.2",
        JSON,
        "An authentication error SHOULD carry a challenge (WWW-Authenticate).",
        each!(auth_challenge),
    )
    .needs(Needs::Credentials),
    must(
        "tenant-accepted",
        "",
        "8.3.2",
        V1,
        "The tenant of an interface is sent with every call, and the server accepts it.",
        each!(tenant),
    )
    .needs(Needs::Tenant),
];

async fn extended_card(bench: &Bench<'_>) -> Checked {
    let reply = bench.call(Operation::ExtendedCard, json!({})).await?;
    if is_unauthenticated(bench.to.binding, &reply) && bench.wire.credentials.is_empty() {
        return Err(skip("the server asks for credentials: give them with --bearer or --api-key"));
    }
    match &reply.meaning {
        Meaning::Result(card) => hold(!text_of(card, "name").is_empty(), "a card with a name", || shown_json(card)),
        Meaning::Refused(_) => bench.refused(&reply, &[&NO_EXTENDED_CARD]).map(drop),
        Meaning::Nothing(_) => Err(fault("an agent card", reply.shown())),
    }
}

async fn extended_card_secret(bench: &Bench<'_>) -> Checked {
    if !bench.card.wants_credentials() {
        return Err(skip("the card asks for no credentials"));
    }
    let options = Options { anonymous: true, ..Options::default() };
    let reply = bench.call_with(Operation::ExtendedCard, json!({}), &options).await?;
    match &reply.meaning {
        Meaning::Refused(_) => Ok(()),
        Meaning::Result(_) | Meaning::Nothing(_) => Err(fault("an error", reply.shown())),
    }
}

async fn not_declared(bench: &Bench<'_>) -> Checked {
    let reply = bench.call(Operation::ExtendedCard, json!({})).await?;
    bench.refused(&reply, &[&UNSUPPORTED_OPERATION]).map(drop)
}

/// Whether the caller is told that it must prove who it is.
pub(crate) fn is_unauthenticated(binding: Binding, reply: &Reply) -> bool {
    match binding {
        Binding::Grpc => matches!(&reply.meaning, Meaning::Refused(refused) if matches!(refused.code, 7 | 16)),
        Binding::JsonRpc | Binding::HttpJson => {
            let names_it = match &reply.meaning {
                // The specification leaves the code over JSON-RPC to the server.
                Meaning::Refused(refused) => {
                    let text = format!("{} {}", refused.reason.clone().unwrap_or_default(), refused.message);
                    text.to_ascii_lowercase().contains("auth")
                }
                Meaning::Result(_) | Meaning::Nothing(_) => false,
            };
            matches!(reply.raw.status, 401 | 403) || binding == Binding::JsonRpc && names_it
        }
    }
}

async fn anonymous(bench: &Bench<'_>) -> Result<Reply, super::super::bench::Finding> {
    let options = Options { anonymous: true, ..Options::default() };
    bench.call_with(Operation::Get, json!({ "id": super::super::fresh_id() }), &options).await
}

async fn auth_required(bench: &Bench<'_>) -> Checked {
    let reply = anonymous(bench).await?;
    hold(is_unauthenticated(bench.to.binding, &reply), "an authentication error", || reply.shown())
}

async fn auth_challenge(bench: &Bench<'_>) -> Checked {
    let reply = anonymous(bench).await?;
    if reply.raw.status != 401 {
        return Err(skip("the call was not answered with 401"));
    }
    hold(!reply.raw.header("www-authenticate").is_empty(), "WWW-Authenticate", || "no such header".to_owned())
}

async fn tenant(bench: &Bench<'_>) -> Checked {
    bench.refused(bench.unknown().await?, &[&TASK_NOT_FOUND]).map(drop)
}
