//! The requests to an authorization server: forms out, JSON back (RFC 6749, 5).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request};
use serde::Deserialize;
use serde_json::Value;
use switchboard_core::dialect::json::excerpt;

use super::super::http::{Http, Named, escaped};
use super::super::wall_clock;
use super::metadata::check_transport;
use super::{OAuthClient, StoredToken, not_authorized};
use crate::call_error::CallError;
use crate::outbound::{RequestLimits, check_url};

/// The size of an answer of an authorization server.
const ANSWER_BYTES_MAX: u64 = 64 * 1_024;
/// What the server says of an error is kept up to this length.
const ERROR_BYTES_MAX: usize = 512;

/// A refusal of an authorization server.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    /// Such as `invalid_grant`.
    pub(super) error: String,
    pub(super) error_description: String,
}

impl Refusal {
    pub(super) fn into_error(self) -> CallError {
        let Self { error, error_description } = self;
        let (error, said) = (excerpt(&error, ERROR_BYTES_MAX), excerpt(&error_description, ERROR_BYTES_MAX));
        let why = match (error.as_str(), said.as_str()) {
            ("", _) => "the authorization server refused".to_owned(),
            ("access_denied", "") => "the login was denied (access_denied)".to_owned(),
            ("expired_token", "") => "the login was not confirmed in time (expired_token)".to_owned(),
            (error, "") => format!("the authorization server refused: {error}"),
            (error, said) => format!("the authorization server refused: {error} ({said})"),
        };
        not_authorized(why).with_wire_text(error)
    }
}

#[derive(Deserialize)]
struct Issued {
    access_token: String,
    token_type: String,
    expires_in: Option<Value>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

/// Reads a token that was issued now.
fn read_token(
    json: &[u8],
    token_url: &str,
    client_id: &str,
    asked: &[String],
    now_s: u64,
) -> Result<StoredToken, String> {
    // The error of the parser could quote the token.
    let issued: Issued = serde_json::from_slice(json)
        .map_err(|_| "the answer of the authorization server has no access_token and token_type".to_owned())?;
    if !issued.token_type.eq_ignore_ascii_case("bearer") {
        let kind = excerpt(&issued.token_type, 64);
        return Err(format!("the authorization server issued a token of the type {kind:?}; expected \"Bearer\""));
    }
    // Some servers write the number as a text.
    let seconds = |value: Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let scopes = issued.scope.as_deref().map(|scope| scope.split_whitespace().map(str::to_owned).collect());
    Ok(StoredToken {
        access_token: issued.access_token,
        refresh_token: issued.refresh_token.filter(|token| !token.is_empty()),
        expires_at_s: issued.expires_in.and_then(seconds).map(|seconds| now_s.saturating_add(seconds)),
        token_endpoint: token_url.to_owned(),
        client_id: client_id.to_owned(),
        // A server that gives what was asked for need not repeat it.
        scopes: scopes.unwrap_or_else(|| asked.to_vec()),
    })
}

impl Http {
    /// Asks for a token. Inside, what the server refused with.
    pub(super) async fn issued(
        &self,
        client: &OAuthClient,
        url: &str,
        named: &Named,
        secret_in_body: bool,
        scopes: &[String],
        form: &[(&str, &str)],
    ) -> Result<Result<StoredToken, Refusal>, CallError> {
        let json = match self.posted(client, url, named, secret_in_body, form).await? {
            Ok(json) => json,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let token = read_token(&json, url, &client.id, scopes, wall_clock::now_s());
        token.map(Ok).map_err(CallError::invalid_answer)
    }

    /// Posts a form to an authorization server in the name of an application.
    pub(super) async fn posted(
        &self,
        client: &OAuthClient,
        url: &str,
        named: &Named,
        secret_in_body: bool,
        form: &[(&str, &str)],
    ) -> Result<Result<Bytes, Refusal>, CallError> {
        let unusable = |why: String| not_authorized(format!("the authorization server at {url:?}: {why}"));
        let uri = check_url(url).map_err(unusable)?;
        // What the user names may be private; what a card names is foreign, unless it is at an origin that the user named.
        let own = client.token_url.as_deref().map(|own| own == url);
        let named = if own == Some(true) { &Named::All } else { named };
        check_transport(&uri, named).map_err(unusable)?;
        let in_body = client.secret_in_body || secret_in_body;
        let mut body: Vec<String> =
            form.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
        let mut request = Request::new(Bytes::new());
        match &client.secret {
            Some(secret) if !in_body => {
                let pair = STANDARD.encode(format!("{}:{}", escaped(&client.id), escaped(secret)));
                let basic = HeaderValue::from_str(&format!("Basic {pair}"));
                let mut basic = basic.map_err(|_| unusable("the secret cannot be sent".to_owned()))?;
                basic.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, basic);
            }
            Some(secret) => {
                body.push(format!("client_id={}", escaped(&client.id)));
                body.push(format!("client_secret={}", escaped(secret)));
            }
            None => body.push(format!("client_id={}", escaped(&client.id))),
        }
        *request.method_mut() = Method::POST;
        *request.body_mut() = Bytes::from(body.join("&"));
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let mut limits = RequestLimits::default();
        limits.total = Some(self.limits.call);
        limits.body_bytes_max = Some(ANSWER_BYTES_MAX);
        // A redirect is not followed: the form holds secrets.
        let answer = self.client_for(&uri, named).send(request_to(request, uri.clone()), &limits).await;
        let answer = answer.map_err(|error| CallError::of_outbound(&error))?;
        let status = answer.status();
        // Interceptors see calls to agents, and not what authorization servers are told and answer.
        let json = answer.into_body().bytes().await.map_err(|error| CallError::of_outbound(&error))?;
        if status.is_success() {
            // Some servers refuse with a status of success.
            return Ok(match serde_json::from_slice::<Refusal>(&json) {
                Ok(refusal) if !refusal.error.is_empty() => Err(refusal),
                _ => Ok(json),
            });
        }
        match serde_json::from_slice::<Refusal>(&json) {
            Ok(refusal) if !refusal.error.is_empty() => Ok(Err(refusal)),
            _ => {
                let error = unusable(format!("it answered with HTTP {}", status.as_u16()));
                Err(if status.is_server_error() { error.retryable() } else { error })
            }
        }
    }
}

fn request_to(mut request: Request<Bytes>, uri: http::Uri) -> Request<Bytes> {
    *request.uri_mut() = uri;
    request
}

#[cfg(test)]
mod tests {
    use super::read_token;

    #[test]
    fn a_token_is_read_as_servers_write_it() {
        let read = |json: &str| read_token(json.as_bytes(), "https://t", "app", &["a".to_owned()], 1_000);
        let token =
            read(r#"{"access_token":"x","token_type":"bearer","expires_in":60,"refresh_token":"r","scope":"b c"}"#);
        let token = token.unwrap();
        assert_eq!(
            (token.expires_at_s, token.scopes, token.refresh_token.as_deref()),
            (Some(1_060), vec!["b".to_owned(), "c".to_owned()], Some("r"))
        );
        let token = read(r#"{"access_token":"x","token_type":"Bearer","expires_in":"60","refresh_token":""}"#).unwrap();
        assert_eq!((token.expires_at_s, token.scopes, token.refresh_token), (Some(1_060), vec!["a".to_owned()], None));
        for bad in [
            "{}",
            "",
            r#"{"access_token":"s3cret"}"#,
            r#"{"access_token":7,"token_type":"Bearer"}"#,
            r#"{"access_token":"s3cret","token_type":"DPoP"}"#,
        ] {
            let error = read(bad).unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
