//! The client library over sockets: against our own server in every version, binding and dialect, behind a proxy that breaks
//! connections, and against servers that answer what no client expects.

mod blocking;
mod calls;
mod cards;
mod flaky;
mod hostile;
mod interceptors;
mod mounted;
mod places;
mod retries;
mod streams;
mod texts;
mod webhooks;

use std::time::Duration;

use switchboard::client::{Client, ClientBuilder, ClientLimits, RetryPolicy};
use switchboard::{AgentClient, ServerBuilder};

use crate::support::grpc::Served;

/// A client whose pauses are short.
fn quick() -> ClientBuilder {
    Client::builder().retry(quick_retries())
}

fn quick_retries() -> RetryPolicy {
    let mut retry = RetryPolicy::default();
    (retry.pause_first, retry.pause_max) = (Duration::from_millis(1), Duration::from_millis(5));
    retry
}

fn limits(change: impl FnOnce(&mut ClientLimits)) -> ClientLimits {
    let mut limits = ClientLimits::default();
    change(&mut limits);
    limits
}

async fn served(builder: ServerBuilder) -> (Served, String) {
    let served = Served::start(builder).await;
    let url = format!("http://{}", served.address);
    (served, url)
}

/// The agent at a URL, called by a client with short pauses.
async fn agent(url: &str) -> AgentClient {
    quick().build().unwrap().agent(url).await.unwrap()
}
