//! Calls to an agent as bytes on the wire. The typed client copes with faults of other servers; this code shows them.
//!
//! Callers write the parameters of a call in the form of 1.0. `forms` spells them for the version of an interface, `http` and `grpc`
//! send them and read what comes back, `sse` and `proto` know the formats. Nothing is corrected on the way: a [`Reply`] keeps the
//! head and the bytes beside what was understood.

pub(crate) mod forms;
#[cfg(feature = "grpc")]
mod grpc;
pub(crate) mod http;
#[cfg(feature = "grpc")]
mod proto;
pub(crate) mod sse;

use std::fmt;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use bytes::Bytes;
use serde_json::Value;
use switchboard::outbound::{AddressPolicy, BuildError, Client, Trust};

/// The whole of what is read of one answer.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// The whole of what is read of one stream, and how many events.
const STREAM_BYTES_MAX: usize = 16 << 20;
const STREAM_EVENTS_MAX: usize = 10_000;
/// What is shown of a text of the other side.
const SHOWN_CHARS_MAX: usize = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
}

impl Binding {
    /// Cards spell bindings in capitals, and not all of them do.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_uppercase().as_str() {
            "JSONRPC" => Some(Self::JsonRpc),
            "HTTP+JSON" => Some(Self::HttpJson),
            "GRPC" => Some(Self::Grpc),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    V1_0,
    V0_3,
    V0_2,
}

impl Version {
    /// Patch numbers do not count.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().split('.');
        match (numbers.next()?, numbers.next().unwrap_or("0")) {
            ("1", "0") => Some(Self::V1_0),
            ("0", "3") => Some(Self::V0_3),
            ("0", "2") => Some(Self::V0_2),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V0_3 => "0.3",
            Self::V0_2 => "0.2",
        }
    }
}

/// An address of the agent, and what is spoken there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) binding: Binding,
    pub(crate) version: Version,
    pub(crate) url: String,
    pub(crate) tenant: Option<String>,
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.binding.name(), self.version.name())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    CreatePush,
    GetPush,
    ListPush,
    DeletePush,
    ExtendedCard,
}

/// What an answer is made of, before anybody understands it. Of gRPC, the trailers are among the headers.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Raw {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The media type, in lower case and without parameters.
    pub(crate) fn media_type(&self) -> String {
        self.header("content-type").split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    pub(crate) fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        format!("HTTP {} {} {}", self.status, self.media_type(), shown(&text))
    }
}

/// An answer, and what it means on its binding.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) raw: Raw,
    pub(crate) meaning: Meaning,
}

#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Result(Value),
    Refused(Refused),
    /// Neither a result nor an error of the binding.
    Nothing(String),
}

/// An error as the binding spells it.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// The code of JSON-RPC, the status of HTTP, or the status of gRPC.
    pub(crate) code: i64,
    pub(crate) message: String,
    /// Of the first `ErrorInfo` among the details.
    pub(crate) reason: Option<String>,
    pub(crate) domain: Option<String>,
    /// The error object.
    pub(crate) json: Value,
}

impl Reply {
    pub(crate) fn shown(&self) -> String {
        match &self.meaning {
            Meaning::Result(value) => format!("a result: {}", shown(&value.to_string())),
            Meaning::Refused(error) => {
                let reason = error.reason.as_deref().unwrap_or("no reason");
                format!("error {} ({}): {}", error.code, shown(reason), shown(&error.message))
            }
            Meaning::Nothing(why) => why.clone(),
        }
    }
}

/// What came of a call whose answer is a stream.
#[derive(Clone, Debug)]
pub(crate) enum Streamed {
    Events(Box<Events>),
    /// An answer that is no stream.
    Whole(Box<Reply>),
}

#[derive(Clone, Debug)]
pub(crate) struct Events {
    pub(crate) raw: Raw,
    pub(crate) all: Vec<StreamEvent>,
    pub(crate) end: StreamEnd,
    /// From the request to the head of the answer.
    pub(crate) head_after: Duration,
    /// What JSON-RPC was asked with.
    pub(crate) asked_id: Value,
}

#[derive(Clone, Debug)]
pub(crate) struct StreamEvent {
    /// What the binding carries: the event, without the envelope of JSON-RPC.
    pub(crate) payload: Value,
    /// The whole of it, as JSON.
    pub(crate) json: Value,
    /// Why it could not be read.
    pub(crate) fault: Option<String>,
    /// From the head of the answer.
    pub(crate) after: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    Closed,
    /// The checker had seen what it wanted.
    Left,
    TimedOut,
    Broken(String),
}

/// What a call has beside its parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) version: VersionHeader,
    /// Shows no credentials.
    pub(crate) anonymous: bool,
    /// Names the extensions that the card requires unless this is set.
    pub(crate) without_extensions: bool,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The id of the JSON-RPC request, in place of a new one.
    pub(crate) rpc_id: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum VersionHeader {
    #[default]
    Own,
    Absent,
    Text(&'static str),
}

/// What all calls to one agent share.
pub(crate) struct Wire {
    /// For what the user named, which may be private.
    named: Client,
    /// For addresses that the card gives.
    others: Client,
    named_host: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) credentials: Vec<(HeaderName, HeaderValue)>,
    /// The extensions that the card requires.
    pub(crate) extensions: String,
}

impl Wire {
    /// # Errors
    /// When a file of certificates cannot be used.
    pub(crate) fn new(
        named_host: Option<String>,
        allow_private: bool,
        trust: Trust,
        timeout: Duration,
    ) -> Result<Self, BuildError> {
        let policy = if allow_private { AddressPolicy::any() } else { AddressPolicy::public() };
        let named = Client::builder().policy(AddressPolicy::any()).trust(trust.clone()).build()?;
        let others = Client::builder().policy(policy).trust(trust).build()?;
        Ok(Self { named, others, named_host, timeout, credentials: Vec::new(), extensions: String::new() })
    }

    fn client(&self, uri: &Uri) -> &Client {
        let is_named = match (&self.named_host, uri.host()) {
            (Some(named), Some(host)) => named.eq_ignore_ascii_case(host),
            (None, _) => true,
            (Some(_), None) => false,
        };
        if is_named { &self.named } else { &self.others }
    }

    /// Calls, with parameters in the form of 1.0, and reads the whole answer.
    ///
    /// # Errors
    /// When there is no answer, or the version has no such call.
    pub(crate) async fn call(
        &self,
        to: &Interface,
        operation: Operation,
        params: &Value,
        options: &Options,
    ) -> Result<Reply, String> {
        match to.binding {
            Binding::JsonRpc => self.call_jsonrpc(to, operation, params, options).await,
            Binding::HttpJson => self.call_http_json(to, operation, params, options).await,
            #[cfg(feature = "grpc")]
            Binding::Grpc => self.call_grpc(to, operation, params, options).await,
            #[cfg(not(feature = "grpc"))]
            Binding::Grpc => Err("this build has no gRPC".to_owned()),
        }
    }

    /// Calls an operation that streams, and reads until the stream ends, `enough` says so, or the time is over.
    ///
    /// # Errors
    /// As of [`Wire::call`].
    pub(crate) async fn stream(
        &self,
        to: &Interface,
        operation: Operation,
        params: &Value,
        options: &Options,
        enough: &(dyn Fn(&[StreamEvent]) -> bool + Sync),
    ) -> Result<Streamed, String> {
        match to.binding {
            Binding::JsonRpc | Binding::HttpJson => self.stream_http(to, operation, params, options, enough).await,
            #[cfg(feature = "grpc")]
            Binding::Grpc => self.stream_grpc(to, operation, params, options, enough).await,
            #[cfg(not(feature = "grpc"))]
            Binding::Grpc => Err("this build has no gRPC".to_owned()),
        }
    }

    /// The service parameters and credentials of a call.
    fn headers(&self, to: &Interface, options: &Options) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let version = match (options.version, to.version) {
            (VersionHeader::Own, Version::V1_0) => Some("1.0"),
            // Clients of these versions send none.
            (VersionHeader::Own, Version::V0_3 | Version::V0_2) | (VersionHeader::Absent, _) => None,
            (VersionHeader::Text(text), _) => Some(text),
        };
        if let Some(version) = version {
            headers.insert("a2a-version", HeaderValue::from_static(version));
        }
        if !options.without_extensions
            && !self.extensions.is_empty()
            && let Ok(value) = HeaderValue::from_str(&self.extensions)
        {
            headers.insert("a2a-extensions", value.clone());
            headers.insert("x-a2a-extensions", value);
        }
        if !options.anonymous {
            headers.extend(self.credentials.iter().cloned());
        }
        headers.extend(options.headers.iter().cloned());
        headers
    }
}

/// A text of the other side as it may be shown: bounded, without control characters.
pub(crate) fn shown(text: &str) -> String {
    let clean: String = text
        .chars()
        .take(SHOWN_CHARS_MAX)
        .map(|each| if each.is_control() || is_invisible(each) { ' ' } else { each })
        .collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() { format!("{}…", clean.trim()) } else { clean.trim().to_owned() }
}

/// Characters that turn the direction of a text or have no width, by which a terminal shows something else than what is there.
fn is_invisible(each: char) -> bool {
    matches!(each, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// `ErrorInfo` among the details of an error.
fn error_info(details: &Value) -> (Option<String>, Option<String>) {
    let info = details
        .as_array()
        .into_iter()
        .flatten()
        .find(|detail| detail["@type"].as_str().is_some_and(|kind| kind.ends_with("google.rpc.ErrorInfo")));
    let text = |name: &str| info.and_then(|info| info[name].as_str()).map(str::to_owned);
    (text("reason"), text("domain"))
}
