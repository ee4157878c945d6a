//! The way back from a browser to a program on the same machine (RFC 8252, 7.3): a port on loopback that waits for one request.

use std::future::poll_fn;
use std::net::Ipv4Addr;
use std::task::Poll;
use std::time::Duration;

use switchboard_core::call::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::not_authorized;
use crate::call_error::CallError;

/// Browsers open connections that they may not use.
const CONNECTIONS_MAX: usize = 16;
/// How long one has for its request, and how long that may be.
const REQUEST_TIME: Duration = Duration::from_secs(10);
const REQUEST_BYTES_MAX: u64 = 16 * 1_024;

const PATH: &str = "/callback";
const PAGE: &str =
    "<!doctype html><title>Back to the program</title><p>You can close this window and go back to the program.</p>";

/// Waits on this machine for the browser of a login to come back.
#[derive(Debug)]
pub struct RedirectListener {
    listener: TcpListener,
    url: String,
}

impl RedirectListener {
    /// Takes a free port of `127.0.0.1`.
    ///
    /// # Errors
    /// When there is none.
    pub async fn bind() -> Result<Self, CallError> {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let unbound =
            |error: std::io::Error| not_authorized(format!("no port for the way back from the browser: {error}"));
        let listener = bound.map_err(unbound)?;
        let url = format!("http://{}{PATH}", listener.local_addr().map_err(unbound)?);
        Ok(Self { listener, url })
    }

    /// What [`OAuthLogin::authorization_code`](super::OAuthLogin::authorization_code) is given.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits for the browser, and gives what [`AuthorizationLogin::finish`](super::AuthorizationLogin::finish) wants.
    ///
    /// # Errors
    /// When it does not come back within this time.
    pub async fn wait(&self, limit: Duration) -> Result<String, CallError> {
        let mut open: Vec<BoxFuture<'static, Option<String>>> = Vec::new();
        let waiting = poll_fn(|cx| {
            loop {
                let mut has_changed = false;
                while open.len() < CONNECTIONS_MAX
                    && let Poll::Ready(accepted) = self.listener.poll_accept(cx)
                {
                    has_changed = true;
                    if let Ok((stream, _)) = accepted {
                        open.push(Box::pin(async { timeout(REQUEST_TIME, answered(stream)).await.ok().flatten() }));
                    }
                }
                let mut at = 0;
                while let Some(connection) = open.get_mut(at) {
                    match connection.as_mut().poll(cx) {
                        Poll::Ready(Some(target)) => return Poll::Ready(target),
                        Poll::Ready(None) => {
                            drop(open.swap_remove(at));
                            has_changed = true;
                        }
                        Poll::Pending => at += 1,
                    }
                }
                if !has_changed {
                    return Poll::Pending;
                }
            }
        });
        let late = |_| not_authorized(format!("the browser did not come back within {limit:?}"));
        timeout(limit, waiting).await.map_err(late)
    }
}

/// Answers one request; gives its target if it is the one that is waited for.
async fn answered(mut stream: TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let (reading, mut writing) = stream.split();
    let mut reading = reading.take(REQUEST_BYTES_MAX);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if reading.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let line = std::str::from_utf8(&head).ok()?.lines().next()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let is_wanted = target.split('?').next() == Some(PATH);
    let (status, page) = if is_wanted { ("200 OK", PAGE) } else { ("404 Not Found", "") };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         referrer-policy: no-referrer\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    writing.write_all(answer.as_bytes()).await.ok()?;
    // What the browser shows matters less than the code that it brought.
    let _ = writing.shutdown().await;
    is_wanted.then(|| target.to_owned())
}
