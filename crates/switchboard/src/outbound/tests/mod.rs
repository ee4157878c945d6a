//! The client against real sockets on loopback, and against name servers that lie.

mod attacks;
mod bodies;
mod dialling;
pub(crate) mod receiver;
mod sending;
mod tls;

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};

use super::connector::Resolve;
use super::{AddressPolicy, Client, Error, ErrorKind, RequestLimits};

pub(crate) fn client(allow: &[&str]) -> Client {
    Client::builder().policy(AddressPolicy::parse(allow).unwrap()).build().unwrap()
}

fn client_with(allow: &[&str], resolver: impl Resolve + 'static, roots: RootCertStore) -> Client {
    let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::assemble(AddressPolicy::parse(allow).unwrap(), Arc::new(resolver), tls)
}

/// Posts two bytes and gives back the status. A short body is read, so that the connection is kept.
async fn post(client: &Client, url: impl AsRef<str>) -> Result<u16, Error> {
    let request = Request::post(url.as_ref()).body(Bytes::from_static(b"{}")).unwrap();
    let mut answer = client.send(request, &RequestLimits::default()).await?;
    answer.body_mut().discard().await;
    Ok(answer.status().as_u16())
}

#[track_caller]
fn assert_refused(outcome: Result<u16, Error>, expected: &str) {
    let error = outcome.expect_err("expected a refusal");
    assert_eq!((error.kind(), error.may_have_arrived()), (ErrorKind::Refused, false), "{error}");
    assert!(error.to_string().contains(expected), "{error}");
}

#[track_caller]
fn assert_failed(outcome: Result<u16, Error>, kind: ErrorKind, expected: &str) {
    let error = outcome.expect_err("expected a failure");
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, expected));
}
