//! HTTP as calls to agents use it: the guarded outbound client under two policies, redirects, and bodies within their limits.
//!
//! What the user named, and its own origin, may be private. Addresses that the other side gives (URLs of a card at another origin,
//! redirects) are called under the policy of the client, which by default is public addresses only.

use bytes::{Bytes, BytesMut};
use http::uri::{Authority, Scheme};
use http::{Method, Request, Response, Uri};

use super::interceptor::{Interceptors, Received, Watch};
use super::limits::ClientLimits;
use crate::call_error::CallError;
use crate::outbound::{self, AddressPolicy, Body, BuildError, Repeat, RequestLimits, Trust, redirect_target, retarget};

/// How many redirects a request follows.
const REDIRECTS_MAX: u8 = 5;
/// How much of the body of a refusal is read.
const ERROR_BYTES_MAX: usize = 64 * 1_024;

/// Sends requests.
#[derive(Clone, Debug)]
pub(super) struct Http {
    /// For what the user named.
    named: outbound::Client,
    /// For everything else.
    foreign: outbound::Client,
    pub(super) interceptors: Interceptors,
    pub(super) limits: ClientLimits,
    /// Whether servers that ask for a certificate are shown one.
    pub(super) has_certificate: bool,
}

/// Which addresses the user has named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// The user gave the card itself, with all its addresses.
    All,
    Origin(Origin),
    /// The other side named it.
    Nothing,
}

/// Scheme, host and port. All names of this machine for itself count as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Origin {
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        let (scheme, host, port) = origin(uri)?;
        Some(Self { scheme: scheme.clone(), host: host.to_ascii_lowercase(), port })
    }

    fn is_of(&self, uri: &Uri) -> bool {
        origin(uri).is_some_and(|(scheme, host, port)| {
            port == self.port && *scheme == self.scheme && host.eq_ignore_ascii_case(&self.host)
        })
    }
}

fn origin(uri: &Uri) -> Option<(&Scheme, &str, u16)> {
    let scheme = uri.scheme()?;
    let port = uri.port_u16().unwrap_or(if *scheme == Scheme::HTTPS { 443 } else { 80 });
    let host = match uri.authority().map(Authority::host)? {
        "127.0.0.1" | "[::1]" => "localhost",
        host => host,
    };
    Some((scheme, host, port))
}

impl Named {
    pub(super) fn covers(&self, uri: &Uri) -> bool {
        match self {
            Self::All => true,
            Self::Origin(origin) => origin.is_of(uri),
            Self::Nothing => false,
        }
    }
}

impl Http {
    pub(super) fn new(
        policy: AddressPolicy,
        trust: Trust,
        interceptors: Interceptors,
        limits: ClientLimits,
    ) -> Result<Self, BuildError> {
        let has_certificate = trust.has_client_certificate();
        let client = |policy| outbound::Client::builder().policy(policy).trust(trust.clone()).build();
        Ok(Self {
            named: client(AddressPolicy::any())?,
            foreign: client(policy)?,
            interceptors,
            limits,
            has_certificate,
        })
    }

    /// The same, under the policy for foreign addresses everywhere.
    pub(super) fn strict(&self) -> Self {
        Self { named: self.foreign.clone(), ..self.clone() }
    }

    pub(super) fn client_for(&self, uri: &Uri, named: &Named) -> &outbound::Client {
        if named.covers(uri) { &self.named } else { &self.foreign }
    }

    /// Sends a request and waits for the head of the answer. A `GET` follows redirects to other origins, without its credentials;
    /// other methods only within their origin, and only where the redirect says to send the same again; `make` is then asked for
    /// the request once more, so that one which is not redirected is never copied.
    pub(super) async fn send(
        &self,
        make: impl Fn() -> Result<Request<Bytes>, CallError>,
        limits: &RequestLimits,
        named: &Named,
        may_repeat: bool,
    ) -> Result<Response<AnswerBody>, CallError> {
        let mut redirects = REDIRECTS_MAX;
        let mut request = make()?;
        loop {
            let uri = request.uri().clone();
            let kept = (request.method() == Method::GET).then(|| request.clone());
            let mut watch = self.interceptors.begin(&mut request);
            let repeat = if may_repeat { Repeat::OnceIfKept } else { Repeat::Never };
            let answer = self.client_for(&uri, named).follow(request, limits, repeat).await;
            let answer = answer.map_err(|error| failed(&error, &mut watch))?;
            if let Some(watch) = &mut watch {
                watch.show(Received::Head { status: answer.status().as_u16(), headers: answer.headers() });
            }
            let mut answer = answer.map(|body| AnswerBody { body, watch });
            let target = redirect_target(&uri, answer.status(), answer.headers());
            let Some(to) = target.map_err(|error| CallError::of_outbound(&error))? else { return Ok(answer) };
            let is_same = matches!(answer.status().as_u16(), 307 | 308) && Origin::of(&to) == Origin::of(&uri);
            if redirects == 0 || !(kept.is_some() || is_same) {
                return Ok(answer);
            }
            answer.body_mut().discard().await;
            redirects -= 1;
            request = match kept {
                Some(kept) => kept,
                None => make()?,
            };
            retarget(&mut request, to);
        }
    }
}

/// A name or value as a query or a form has it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A failure on the way, which interceptors are shown.
fn failed(error: &outbound::Error, watch: &mut Option<Watch>) -> CallError {
    let error = CallError::of_outbound(error);
    if let Some(watch) = watch {
        watch.show(Received::Failed(&error));
    }
    error
}

/// The body of an answer, which interceptors see.
pub(super) struct AnswerBody {
    body: Body,
    pub(super) watch: Option<Watch>,
}

impl AnswerBody {
    /// The next piece; none at the end. Cancelling loses nothing.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        match self.body.chunk().await {
            Ok(chunk) => Ok(chunk),
            Err(error) => Err(failed(&error, &mut self.watch)),
        }
    }

    /// Reads a short rest that is not wanted, so that the connection can be used again.
    pub(super) async fn discard(&mut self) {
        self.body.discard().await;
        self.show(Received::End { trailers: None });
    }

    /// Ends with a stream of which nothing more is wanted, so that the connection can be used again.
    pub(super) fn release(mut self) {
        self.show(Received::End { trailers: None });
        self.body.release();
    }

    pub(super) fn show(&mut self, received: Received<'_>) {
        if let Some(watch) = &mut self.watch {
            watch.show(received);
        }
    }
}

/// Reads a whole body. Its limit is that of its request.
pub(super) async fn read(body: AnswerBody) -> Result<Bytes, CallError> {
    let AnswerBody { body, mut watch } = body;
    let read = body.bytes().await.map_err(|error| failed(&error, &mut watch))?;
    if let Some(watch) = &mut watch {
        watch.show(Received::Body(&read));
    }
    Ok(read)
}

/// Reads a whole body whose request does not bound it, and of which the beginning was read already.
pub(super) async fn read_at_most(begun: Bytes, mut body: AnswerBody, bytes_max: u64) -> Result<Bytes, CallError> {
    let mut whole = BytesMut::from(begun);
    while let Some(chunk) = body.chunk().await? {
        if (whole.len() + chunk.len()) as u64 > bytes_max {
            let error = CallError::invalid_answer(format!("the answer is larger than {bytes_max} bytes"));
            body.show(Received::Failed(&error));
            return Err(error);
        }
        whole.extend_from_slice(&chunk);
    }
    body.show(Received::Body(&whole));
    Ok(whole.freeze())
}

/// Reads the body of a refusal as far as it is of use. One that is larger, or breaks off, is cut.
pub(super) async fn read_refusal(mut body: AnswerBody) -> Bytes {
    let mut read = BytesMut::new();
    while let Ok(Some(chunk)) = body.body.chunk().await {
        let room = ERROR_BYTES_MAX - read.len();
        read.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if read.len() == ERROR_BYTES_MAX {
            break;
        }
    }
    body.show(Received::Body(&read));
    read.freeze()
}

#[cfg(test)]
mod tests {
    use super::{Named, Origin};

    #[test]
    fn an_origin_is_compared_by_scheme_host_and_port() {
        let named = |url: &str| Named::Origin(Origin::of(&url.parse().unwrap()).unwrap());
        for (one, other, expected) in [
            ("https://a.example/x", "https://A.example:443/y", true),
            ("http://127.0.0.1:8080", "http://localhost:8080/rpc", true),
            ("http://[::1]:8080", "http://127.0.0.1:8080/rpc", true),
            ("http://127.0.0.1:8080", "http://127.0.0.1:9090", false),
            ("http://127.0.0.1:8080", "http://127.0.0.2:8080", false),
            ("https://a.example", "http://a.example", false),
            ("https://a.example", "https://b.example", false),
        ] {
            assert_eq!(named(one).covers(&other.parse().unwrap()), expected, "{one} {other}");
        }
        assert!(Named::All.covers(&"http://10.0.0.1".parse().unwrap()));
    }
}
