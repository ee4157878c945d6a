//! The failures of the kits that are not faults of the server, and why.
//!
//! A failure is excused by what the kit said, because a test that fails for another reason than the known one is a fault
//! that nobody has looked at. An excuse that no failure needs is reported, too, so that the list does not outlive its causes.
//! The kit of 1.0 was written for specification 1.0.0; on the corrected kit nothing is excused.

/// One excuse. The test, the run and what the kit said must all fit; in each, `*` stands for any text.
pub(super) struct KnownFailure {
    /// The test's id.
    pub(super) id: &'static str,
    /// All that the kit says, which may be several lines.
    pub(super) said: &'static str,
    /// The run it fails in.
    pub(super) run: &'static str,
    /// Whether the corrected kit says it as well.
    pub(super) outlives_corrections: bool,
    pub(super) reason: &'static str,
}

impl KnownFailure {
    fn applies_to(&self, corrected: bool) -> bool {
        !corrected || self.outlives_corrections
    }

    fn excuses(&self, run: &str, corrected: bool, id: &str, said: &str) -> bool {
        self.applies_to(corrected) && fits(self.run, run) && fits(self.id, id) && fits(self.said, said)
    }
}

const MEDIA_TYPE: &str = "1.0.0 only: since 1.0.1 application/a2a+json SHOULD be used (11.1, 11.6)";

/// A failure that the corrections of the kit remove.
const fn corrected(id: &'static str, said: &'static str, run: &'static str, reason: &'static str) -> KnownFailure {
    KnownFailure { id, said, run, outlives_corrections: false, reason }
}

/// A failure that the corrected kit shows as well.
const fn remaining(id: &'static str, said: &'static str, run: &'static str, reason: &'static str) -> KnownFailure {
    KnownFailure { id, said, run, outlives_corrections: true, reason }
}

pub(super) const OF_1_0: &[KnownFailure] = &[
    corrected(
        "core_operations/test_requirements.py::test_must_requirement[CORE-SEND-003-*",
        "*Operation failed: *this agent does not read application/x-unsupported-tck-type (it reads text/plain)*",
        "*",
        "the kit's text asks for ContentTypeNotSupportedError, its runner for success (3.1.1, 3.3.2)",
    ),
    corrected(
        "core_operations/test_transport_behavior.py::TestRestFormat::test_response_content_type",
        "*Expected Content-Type application/json, got: 'application/a2a+json'*",
        "*",
        MEDIA_TYPE,
    ),
    corrected(
        "core_operations/test_error_handling.py::TestRestErrorStructure::test_error_uses_aip193_format",
        "*Error Content-Type must be application/json, got: 'application/a2a+json'*",
        "*",
        MEDIA_TYPE,
    ),
    corrected(
        "http_json/test_problem_details.py::TestAIP193ErrorFormat::test_error_content_type",
        "*Error Content-Type must be application/json, got: 'application/a2a+json'*",
        "*",
        MEDIA_TYPE,
    ),
    corrected(
        "http_json/test_http_status.py::TestHttpJsonStatusCodes::test_content_type_not_supported_returns_415",
        "*expected ContentTypeNotSupportedError (415), got 400*",
        "*",
        "1.0.0 only: since 1.0.1 ContentTypeNotSupportedError is 400 (5.4)",
    ),
    corrected(
        "grpc/test_status_codes.py::TestGrpcStatusCodes::test_version_not_supported_returns_unimplemented",
        "*expected VersionNotSupportedError (UNIMPLEMENTED), got FAILED_PRECONDITION*",
        "*",
        "1.0.0 only: since 1.0.1 VersionNotSupportedError is FAILED_PRECONDITION (5.4)",
    ),
    corrected(
        "grpc/test_status_codes.py::TestGrpcStatusCodes::test_unsupported_operation_returns_unimplemented",
        "*expected UnsupportedOperationError (UNIMPLEMENTED), got FAILED_PRECONDITION*",
        "minimal",
        "1.0.0 only: since 1.0.1 UnsupportedOperationError is FAILED_PRECONDITION (5.4)",
    ),
    corrected(
        "grpc/test_status_codes.py::TestGrpcStatusCodes::test_push_not_supported_returns_unimplemented",
        "*expected PushNotificationNotSupportedError (UNIMPLEMENTED), got FAILED_PRECONDITION*",
        "minimal",
        "1.0.0 only: since 1.0.1 PushNotificationNotSupportedError is FAILED_PRECONDITION (5.4)",
    ),
    corrected(
        "core_operations/test_transport_behavior.py::TestRestStreaming::test_streaming_content_type",
        "httpx.ResponseNotRead: Attempted to access streaming response content, without having called `read()`.*",
        "minimal",
        "the kit closes a refused stream unread and then reads it; meant to be a skip",
    ),
];

pub(super) const OF_0_3: &[KnownFailure] = &[
    remaining(
        "optional/capabilities/test_agent_card_optional.py::test_agent_interfaces_structure",
        "*interface url at index 2 must be a valid HTTP/HTTPS URL*",
        "capabilities-*",
        "the kit wants an http or https URL for gRPC, too; the gRPC libraries of the clients take host:port and no scheme",
    ),
    remaining(
        "optional/capabilities/test_push_notification_config_methods.py::test_get_push_notification_config",
        "*get config failed*'code': -32001, 'message': 'The task has no push config default'*",
        "capabilities-jsonrpc",
        "the kit sets a config without an id and then asks for one named \"default\"; nothing gives it that name",
    ),
    remaining(
        "optional/capabilities/test_message_send_capabilities.py::test_message_send_continue_with_contextid",
        "*is_json_rpc_success_response*'code': -32602, 'message': 'Invalid method parameters'*",
        "capabilities-rest",
        "the kit looks for contextId beside the task, does not find it and makes one up, which is not the task's",
    ),
    remaining(
        "optional/quality/test_task_state_quality.py::test_task_state_transitions",
        "*Unexpected initial state: input-required*",
        "quality-*",
        "the kit wants the task to be at work when message/send has answered; a send that does not say blocking: false is \
         answered when the agent has asked its question",
    ),
    remaining(
        "optional/features/test_invalid_business_logic.py::test_missing_required_message_fields",
        "*messages missing required 'messageId' field per A2A spec, but got: {'result': *",
        "features-*",
        "a message without messageId is accepted and given one, because older systems send none (docs/dialects.md); without \
         role or parts it is refused, which the kit does not get to",
    ),
];

/// Why a failure is not ours; none for a failure that is.
pub(super) fn excuse(
    known: &'static [KnownFailure],
    run: &str,
    corrected: bool,
    id: &str,
    said: &str,
) -> Option<&'static KnownFailure> {
    known.iter().find(|known| known.excuses(run, corrected, id, said))
}

/// The excuses that none of these failures (run, id, what the kit said) needs.
pub(super) fn unused<'a>(
    known: &'static [KnownFailure],
    corrected: bool,
    failures: impl Iterator<Item = (&'a str, &'a str, &'a str)> + Clone,
) -> impl Iterator<Item = &'static KnownFailure> {
    let is_needed =
        move |known: &KnownFailure| failures.clone().any(|(run, id, said)| known.excuses(run, corrected, id, said));
    known.iter().filter(move |known| known.applies_to(corrected) && !is_needed(known))
}

/// Whether a text is the pattern with some text in place of each `*`.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{KnownFailure, excuse, fits, unused};

    const KNOWN: &[KnownFailure] = &[KnownFailure {
        id: "a.py::t[*",
        said: "*wants 409, got 400*",
        run: "full",
        outlives_corrections: false,
        reason: "the number is an old one",
    }];

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in [("*", ""), ("a*", "a"), ("*b", "ab"), ("a*c*e", "abcde"), ("a*b", "ab"), ("[*]", "[x]")]
        {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a*", "ba"), ("*b", "ba"), ("a*c*e", "abde"), ("ab*ba", "aba"), ("a", "ab")]
        {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_failure_is_excused_by_what_the_kit_said() {
        let known = |run, corrected, id, said| excuse(KNOWN, run, corrected, id, said).map(|known| known.reason);
        assert_eq!(
            known("full", false, "a.py::t[grpc]", "it wants 409, got 400 there"),
            Some("the number is an old one")
        );
        assert_eq!(known("full", false, "a.py::t[grpc]", "it wants 409, got 500 there"), None);
        assert_eq!(known("full", false, "a.py::u[grpc]", "it wants 409, got 400 there"), None);
        assert_eq!(known("minimal", false, "a.py::t[grpc]", "it wants 409, got 400 there"), None);
        assert_eq!(known("full", true, "a.py::t[grpc]", "it wants 409, got 400 there"), None);
    }

    #[test]
    fn an_excuse_that_no_failure_needs_is_found() {
        let failed = [("full", "a.py::t[grpc]", "wants 409, got 400")];
        assert_eq!(unused(KNOWN, false, failed.into_iter()).count(), 0);
        assert_eq!(unused(KNOWN, false, std::iter::empty()).count(), 1);
        assert_eq!(unused(KNOWN, true, std::iter::empty()).count(), 0, "it is not for the corrected kit");
    }
}
