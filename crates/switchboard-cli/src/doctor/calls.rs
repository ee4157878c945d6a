//! Real calls: whether each interface answers, what credentials it wants, and whether streams arrive as they happen.

use std::time::Duration;

use serde_json::json;

use super::{Finding, fine, hint, wrong};
use crate::conformance::bench::message;
use crate::conformance::card::Card;
use crate::conformance::fresh_id;
use crate::conformance::wire::forms::{Payload, State};
use crate::conformance::wire::{
    Binding, Events, Interface, Meaning, Operation, Options, Reply, StreamEnd, Streamed, Version, Wire, shown,
};

/// Events that come after so long a silence, all at once, were probably held back.
const SILENCE_MS_MIN: u128 = 1_000;
/// All at once.
const LUMP_MS_MAX: u128 = 50;

/// Makes the cheapest call on each interface.
pub(super) async fn examine(wire: &Wire, card: &Card, findings: &mut Vec<Finding>) {
    findings.push(schemes(card));
    for to in &card.interfaces {
        let unknown = json!({ "id": fresh_id() });
        let anonymous = Options { anonymous: true, ..Options::default() };
        let bare = wire.call(to, Operation::Get, &unknown, &anonymous).await;
        if card.wants_credentials() && bare.as_ref().is_ok_and(|reply| !is_unauthenticated(to, reply) && is_a2a(reply))
        {
            findings.push(hint(
                "auth",
                format!("{to}: the card asks for credentials, and a call without them is answered"),
                "have the server check every request, or take the requirement off the card",
            ));
        }
        let answered = match wire.credentials.is_empty() {
            true => bare,
            false => wire.call(to, Operation::Get, &unknown, &Options::default()).await,
        };
        findings.push(judged(to, answered, !wire.credentials.is_empty()));
    }
}

/// What the card asks for.
fn schemes(card: &Card) -> Finding {
    let names: Vec<String> =
        card.json["securitySchemes"].as_object().into_iter().flatten().map(|(name, _)| shown(name)).collect();
    match card.wants_credentials() {
        true => fine("auth", format!("the card asks for credentials ({})", names.join(", "))),
        false => fine("auth", "the card asks for no credentials"),
    }
}

fn is_a2a(reply: &Reply) -> bool {
    !matches!(reply.meaning, Meaning::Nothing(_))
}

/// Whether the call was refused because the server does not know who calls.
fn is_unauthenticated(to: &Interface, reply: &Reply) -> bool {
    if matches!(reply.raw.status, 401 | 403 | 407) {
        return true;
    }
    match (&reply.meaning, to.binding) {
        (Meaning::Refused(refused), Binding::Grpc) => matches!(refused.code, 7 | 16),
        (Meaning::Refused(refused), Binding::JsonRpc) => {
            refused.reason.as_deref().is_some_and(|reason| matches!(reason, "UNAUTHENTICATED" | "PERMISSION_DENIED"))
                || matches!(refused.code, -31401 | -31403)
        }
        (Meaning::Refused(_) | Meaning::Result(_) | Meaning::Nothing(_), _) => false,
    }
}

fn judged(to: &Interface, answered: Result<Reply, String>, has_credentials: bool) -> Finding {
    let reply = match answered {
        Ok(reply) => reply,
        Err(why) => {
            let fix = if why.contains("may not be called") {
                "call it with --allow-private if you trust the card, or have the card name the address that you use"
            } else {
                "check that the address in the card can be reached from where clients are"
            };
            return wrong("call", format!("{to} at {} does not answer: {why}", to.url), fix);
        }
    };
    if is_unauthenticated(to, &reply) {
        let challenge = shown(reply.raw.header("www-authenticate"));
        let seen = format!("{to} refuses the caller ({}) {challenge}", reply.shown());
        return match has_credentials {
            true => wrong(
                "auth",
                seen,
                "check that the token or key is right, in time, and of the scheme that the card names",
            ),
            false => {
                wrong("auth", seen, "give credentials with --bearer or --api-key, of the scheme that the card names")
            }
        };
    }
    match &reply.meaning {
        Meaning::Refused(refused) if is_not_found(to, refused.code, refused.json.is_object()) => {
            fine("call", format!("{to} answers"))
        }
        Meaning::Refused(refused) if is_version(to, refused.code, refused.reason.as_deref()) => wrong(
            "call",
            format!("{to} does not speak the version that the card declares: {}", reply.shown()),
            "declare the versions that the server speaks, or update it",
        ),
        Meaning::Refused(_) if to.version == Version::V1_0 => wrong(
            "call",
            format!("{to} answers an unknown task with {}, where TaskNotFoundError was expected", reply.shown()),
            "run `switchboard conformance` against it, which names the sentences of the specification",
        ),
        Meaning::Refused(_) => fine("call", format!("{to} answers")),
        Meaning::Result(_) => wrong(
            "call",
            format!("{to} answers a question about an unknown task with {}", reply.shown()),
            "run `switchboard conformance` against it, which names the sentences of the specification",
        ),
        Meaning::Nothing(_) => wrong(
            "call",
            format!("{to} at {} does not speak this binding: {}", to.url, reply.raw.shown()),
            "check the path in the card, and that the proxy passes it on to the agent",
        ),
    }
}

fn is_not_found(to: &Interface, code: i64, is_json: bool) -> bool {
    match to.binding {
        Binding::JsonRpc => code == -32001,
        // A page about a path that does not exist has the same status, and no error object.
        Binding::HttpJson => code == 404 && is_json,
        Binding::Grpc => code == 5,
    }
}

fn is_version(to: &Interface, code: i64, reason: Option<&str>) -> bool {
    reason == Some("VERSION_NOT_SUPPORTED") || to.binding == Binding::JsonRpc && code == -32009
}

/// Sends a text as a stream and looks at when its events arrive.
pub(super) async fn stream(
    wire: &mut Wire,
    card: &Card,
    text: &str,
    idle: Option<Duration>,
    findings: &mut Vec<Finding>,
) {
    if !card.can("streaming") {
        findings.push(hint("stream", "the card does not declare streaming", "declare it if the agent can stream"));
        return;
    }
    wire.timeout = idle.unwrap_or(wire.timeout).max(wire.timeout);
    for to in &card.interfaces {
        let params = json!({ "message": message(text) });
        let streamed = wire.stream(to, Operation::Stream, &params, &Options::default(), &|_| false).await;
        findings.extend(match streamed {
            Err(why) => vec![wrong("stream", format!("{to}: {why}"), "check that the proxy lets long answers pass")],
            Ok(Streamed::Whole(reply)) => vec![wrong(
                "stream",
                format!("{to} answers a streaming call with {}", reply.raw.shown()),
                "have the server, or the proxy before it, pass the stream on as text/event-stream",
            )],
            Ok(Streamed::Events(events)) => events_judged(to, &events, idle.is_some()),
        });
    }
}

fn events_judged(to: &Interface, events: &Events, with_idle: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let encoding = events.raw.header("content-encoding");
    if !encoding.is_empty() && encoding != "identity" {
        let fix = "turn compression off for text/event-stream: it makes proxies hold events back";
        findings.push(hint("stream", format!("{to}: the stream is compressed ({})", shown(encoding)), fix));
    }
    let times: Vec<Duration> = events.all.iter().map(|event| events.head_after + event.after).collect();
    findings.push(match lump(&times) {
        true => wrong(
            "stream",
            format!("{to}: all {} events came at once after {:.1?} of silence", times.len(), times[0]),
            "something on the way holds the answer back: turn response buffering off (nginx: proxy_buffering off; or have the \
             server send X-Accel-Buffering: no)",
        ),
        false => fine("stream", format!("{to}: {} events, the first after {:.1?}", times.len(), times.first().copied().unwrap_or_default())),
    });
    let form = to.form();
    let last = events.all.iter().rev().find_map(|event| match form.payload(&event.payload) {
        Payload::Task(value) | Payload::Status(value) => form.state(value),
        Payload::Message(_) => Some(State::Completed),
        Payload::Artifact(_) | Payload::Unknown => None,
    });
    let is_cut = !last.is_some_and(State::is_settled);
    let after = times.last().copied().unwrap_or_default();
    match &events.end {
        StreamEnd::Closed | StreamEnd::Broken(_) if is_cut => findings.push(wrong(
            if with_idle { "idle" } else { "stream" },
            format!("{to}: the stream was cut off after the event at {after:.1?}, before the task was done"),
            "raise the idle timeout of the proxy above the pause between keep-alives (nginx: proxy_read_timeout), or have the \
             server send keep-alive comments more often",
        )),
        StreamEnd::Closed | StreamEnd::Broken(_) | StreamEnd::Left | StreamEnd::TimedOut if with_idle => {
            findings.push(fine("idle", format!("{to}: the stream was not cut off")));
        }
        StreamEnd::Closed | StreamEnd::Broken(_) | StreamEnd::Left | StreamEnd::TimedOut => {}
    }
    findings
}

/// Whether the events of a stream came all at once after a long silence. One event alone says nothing.
fn lump(times: &[Duration]) -> bool {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return false };
    times.len() > 1 && first.as_millis() >= SILENCE_MS_MIN && (*last - *first).as_millis() <= LUMP_MS_MAX
}

#[cfg(test)]
mod tests {
    use super::lump;
    use std::time::Duration;

    #[test]
    fn events_that_come_together_after_a_silence_were_held_back() {
        let times = |ms: &[u64]| ms.iter().map(|ms| Duration::from_millis(*ms)).collect::<Vec<_>>();
        assert!(lump(&times(&[3_000, 3_001, 3_001])));
        for fine in [&[][..], &[5_000], &[20, 3_000, 3_001], &[20, 21, 21], &[1_500, 1_800, 2_400]] {
            assert!(!lump(&times(fine)), "{fine:?}");
        }
    }
}
