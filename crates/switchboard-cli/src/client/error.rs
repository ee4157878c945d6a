//! Why a client command failed, in the words of the a2a-cli specification: a code that programs read, a message and a next step
//! for people, and the exit code that goes with them.

use std::borrow::Cow;
use std::fmt::Display;
use std::process::ExitCode;

use switchboard::{CallError, CallErrorKind, ProtocolError};

use super::text::clean;

/// A failure of a client command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientError {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// One step that helps.
    pub(crate) hint: Option<String>,
    /// The number that the agent gave: of JSON-RPC, HTTP or gRPC.
    pub(crate) wire_code: Option<i64>,
}

/// The code of a failure. Those of the tool itself are the whole registry of the specification, and two of our own prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Usage,
    CardNotFound,
    CardInvalid,
    Unreachable,
    CredentialsMissing,
    AuthFailed,
    Timeout,
    Internal,
    /// The user stopped the command.
    Interrupted,
    /// The reader of standard output has gone.
    OutputClosed,
    /// An error that the protocol names.
    Protocol(Cow<'static, str>),
}

impl Code {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Usage => "A2ACLI_ERR_USAGE",
            Self::CardNotFound => "A2ACLI_ERR_CARD_NOT_FOUND",
            Self::CardInvalid => "A2ACLI_ERR_CARD_INVALID",
            Self::Unreachable => "A2ACLI_ERR_UNREACHABLE",
            Self::CredentialsMissing => "A2ACLI_ERR_CREDENTIALS_MISSING",
            Self::AuthFailed => "A2ACLI_ERR_AUTH_FAILED",
            Self::Timeout => "A2ACLI_ERR_TIMEOUT",
            Self::Internal => "A2ACLI_ERR_INTERNAL",
            Self::Interrupted => "SWITCHBOARD_ERR_INTERRUPTED",
            Self::OutputClosed => "SWITCHBOARD_ERR_OUTPUT_CLOSED",
            Self::Protocol(name) => name,
        }
    }

    /// 3, 4 and 5 mean the same in every command.
    fn exit_number(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::CardInvalid | Self::Internal | Self::Protocol(_) => 1,
            Self::Usage => 2,
            Self::CardNotFound | Self::Unreachable => 3,
            Self::CredentialsMissing | Self::AuthFailed => 4,
            Self::Timeout => 5,
            Self::Interrupted => 130,
        }
    }
}

impl ClientError {
    pub(crate) fn new(code: Code, message: impl Display) -> Self {
        Self { code, message: message.to_string(), hint: None, wire_code: None }
    }

    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(Code::Usage, message)
    }

    pub(crate) fn protocol(name: &'static str, message: impl Display) -> Self {
        Self::new(Code::Protocol(name.into()), message)
    }

    pub(crate) fn internal(message: impl Display) -> Self {
        Self::new(Code::Internal, message)
    }

    pub(crate) fn with_hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code.exit_number())
    }

    /// The failure as a JSON document.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "error": {
                "code": self.code.name(),
                "message": self.message,
                "hint": self.hint,
                "a2aCode": self.wire_code,
            }
        })
    }

    /// A call that came to nothing.
    pub(crate) fn of_call(error: &CallError, has_credentials: bool) -> Self {
        // A status alone, without a word of A2A, may come from anyone on the way.
        let is_bare = error.http_status().is_some() && error.wire_code().is_none() && error.wire_text().is_none();
        let code = match error.protocol_error().filter(|_| !is_bare) {
            Some(refusal) => code_of(refusal, has_credentials),
            None => code_of_kind(error, has_credentials),
        };
        let hint = hint_of(&code, error);
        // What the agent said is more to the point than what we make of it.
        let said = error.wire_text().map(clean).filter(|said| !said.is_empty());
        let message = match (&code, said) {
            (Code::Protocol(_), Some(said)) => said,
            _ => clean(&error.to_string()),
        };
        Self { code, message, hint, wire_code: error.wire_code().or(error.http_status().map(i64::from)) }
    }

    /// A card that could not be had.
    pub(crate) fn of_discovery(error: &CallError) -> Self {
        let code = match error.kind() {
            CallErrorKind::InvalidAnswer => Code::CardInvalid,
            CallErrorKind::InvalidRequest => Code::Usage,
            CallErrorKind::Unreachable | CallErrorKind::TimedOut | CallErrorKind::Broken => Code::Unreachable,
            _ => Code::CardNotFound,
        };
        let hint = match (&code, error.http_status()) {
            (_, Some(401 | 403)) => Some(
                "The card itself is protected, and credentials are not sent to a card endpoint: save the card to a file and \
                 name that file with --agent-card"
                    .to_owned(),
            ),
            (Code::CardNotFound, _) => {
                Some("See where the card is: switchboard doctor shows what each well-known path answers".to_owned())
            }
            (Code::Unreachable, _) => {
                Some("Check the address; switchboard doctor shows which step of the way fails".to_owned())
            }
            _ => None,
        };
        let wire_code = error.http_status().map(i64::from);
        Self { code, message: clean(&error.to_string()), hint, wire_code }
    }
}

/// The name that the protocol has for a refusal.
fn code_of(refusal: &ProtocolError, has_credentials: bool) -> Code {
    use ProtocolError as E;
    let name = match refusal {
        E::TaskNotFound { .. } | E::PushConfigNotFound { .. } => "TaskNotFoundError",
        E::TaskNotCancelable { .. } => "TaskNotCancelableError",
        E::PushNotificationNotSupported => "PushNotificationNotSupportedError",
        E::UnsupportedOperation { .. } => "UnsupportedOperationError",
        E::ContentTypeNotSupported { .. } => "ContentTypeNotSupportedError",
        E::InvalidAgentResponse { .. } => "InvalidAgentResponseError",
        E::ExtendedAgentCardNotConfigured => "ExtendedAgentCardNotConfiguredError",
        E::ExtensionSupportRequired { .. } => "ExtensionSupportRequiredError",
        E::VersionNotSupported { .. } => "VersionNotSupportedError",
        E::ParseError { .. } => "JSONParseError",
        E::InvalidRequest { .. } | E::TooLarge { .. } => "InvalidRequestError",
        E::MethodNotFound { .. } => "MethodNotFoundError",
        E::InvalidParams { .. } => "InvalidParamsError",
        E::Internal { .. } | E::AgentFailed { .. } => "InternalError",
        E::Unauthenticated { .. } if !has_credentials => return Code::CredentialsMissing,
        E::Unauthenticated { .. } | E::PermissionDenied { .. } => return Code::AuthFailed,
        E::Unavailable { .. } | E::ResourceExhausted { .. } => return Code::Unreachable,
    };
    Code::Protocol(name.into())
}

fn code_of_kind(error: &CallError, has_credentials: bool) -> Code {
    match (error.kind(), error.http_status()) {
        (_, Some(401)) if !has_credentials => Code::CredentialsMissing,
        (_, Some(401 | 403)) => Code::AuthFailed,
        (_, Some(404 | 405)) => Code::Protocol("MethodNotFoundError".into()),
        (_, Some(502..=504)) => Code::Unreachable,
        (CallErrorKind::NotAuthorized, _) => Code::AuthFailed,
        (CallErrorKind::CardNotVerified, _) => Code::CardInvalid,
        (CallErrorKind::NoCard, _) => Code::CardNotFound,
        (CallErrorKind::InvalidRequest, _) => Code::Usage,
        (CallErrorKind::InvalidAnswer | CallErrorKind::Refused, _) => {
            Code::Protocol("InvalidAgentResponseError".into())
        }
        _ => Code::Unreachable,
    }
}

fn hint_of(code: &Code, error: &CallError) -> Option<String> {
    let hint = match code {
        Code::CredentialsMissing => {
            "The agent asks for credentials: set A2ACLI_BEARER or A2ACLI_API_KEY, or run switchboard auth login"
        }
        Code::AuthFailed => "The credentials were not accepted: check them, and whether they have expired",
        Code::Protocol(name) if name == "MethodNotFoundError" => {
            "Nothing answers there in this version: check the URL on the card, or try --a2a-version auto"
        }
        Code::Protocol(name) if name == "VersionNotSupportedError" => {
            "See the versions on the card (switchboard card get), and name one with --a2a-version"
        }
        Code::Unreachable if error.kind() == CallErrorKind::OutcomeUnknown => {
            "The message may have arrived: look with switchboard task list before you send it again"
        }
        Code::Unreachable => "Check the address; switchboard doctor shows which step of the way fails",
        _ => return None,
    };
    Some(hint.to_owned())
}
