//! The client against real sockets on loopback, and against name servers that lie.

mod dialling;
mod posting;
mod receiver;
mod signing;
mod tls;

use std::sync::Arc;

use bytes::Bytes;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use switchboard_engine::ports::{Webhook, WebhookCall, WebhookError};

use super::client::GuardedClient;
use super::connector::Resolve;
use super::policy::OutboundPolicy;

fn client(allow: &[&str]) -> GuardedClient {
    GuardedClient::new(OutboundPolicy::parse(allow).unwrap()).unwrap()
}

fn client_with(allow: &[&str], resolver: impl Resolve + 'static, roots: RootCertStore) -> GuardedClient {
    let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    GuardedClient::assemble(OutboundPolicy::parse(allow).unwrap(), Arc::new(resolver), tls)
}

fn call(url: impl Into<String>) -> WebhookCall {
    WebhookCall {
        url: url.into(),
        delivery_id: "t:c:1".to_owned(),
        headers: vec![("content-type", "a/b".to_owned())],
        body: Bytes::from_static(b"{}"),
    }
}

async fn post(client: &GuardedClient, url: impl Into<String>) -> Result<u16, WebhookError> {
    client.post(call(url)).await.map(|answer| answer.status)
}

#[track_caller]
fn assert_refused(outcome: Result<u16, WebhookError>, expected: &str) {
    match outcome {
        Err(WebhookError::Refused(why)) => assert!(why.contains(expected), "{why}"),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[track_caller]
fn assert_failed(outcome: Result<u16, WebhookError>, expected: &str) {
    match outcome {
        Err(WebhookError::Failed(why)) => assert_eq!(why, expected),
        other => panic!("expected a failure, got {other:?}"),
    }
}
