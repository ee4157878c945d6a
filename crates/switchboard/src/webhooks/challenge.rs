//! Asks a receiver whether it wants webhooks: a GET of its URL with a random `validationToken`, which it returns as the body of its
//! answer, as the samples of A2A do. A URL whose owner does not know of this server does not do that.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri};

use crate::outbound::{Client, RequestLimits, check_url};
use crate::random;

/// How long a receiver may take, and how much it may answer with.
const CHALLENGE_WAIT_MAX: Duration = Duration::from_secs(10);
const CHALLENGE_BYTES_MAX: u64 = 1_024;

/// Whether the receiver wants webhooks; otherwise why it is taken that it does not. Nothing of its answer is told.
pub(super) async fn ask(client: &Client, url: &str) -> Result<(), String> {
    let token = random::uuid();
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = with_token(&check_url(url)?, &token)?;
    let limits = RequestLimits {
        total: Some(CHALLENGE_WAIT_MAX),
        body_bytes_max: Some(CHALLENGE_BYTES_MAX),
        ..RequestLimits::default()
    };
    let unconfirmed = || {
        "the receiver did not confirm that it wants webhooks: expected 200 with the value of validationToken as the body of \
         its answer to GET"
            .to_owned()
    };
    let answer = client.send(request, &limits).await.map_err(|_| unconfirmed())?;
    if answer.status() != StatusCode::OK {
        return Err(unconfirmed());
    }
    let body = answer.into_body().bytes().await.map_err(|_| unconfirmed())?;
    if body.trim_ascii() == token.as_bytes() { Ok(()) } else { Err(unconfirmed()) }
}

fn with_token(uri: &Uri, token: &str) -> Result<Uri, String> {
    let mark = if uri.query().is_some() { '&' } else { '?' };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut parts = uri.clone().into_parts();
    let long = |_| "URL has no place for validationToken".to_owned();
    parts.path_and_query = Some(format!("{path}{mark}validationToken={token}").parse().map_err(long)?);
    Uri::from_parts(parts).map_err(|_| "URL has no place for validationToken".to_owned())
}
