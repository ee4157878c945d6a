//! A webhook receiver without a socket: notes every call and answers as it was told to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use switchboard_core::call::BoxFuture;
use switchboard_engine::ports::{Webhook, WebhookCall, WebhookError};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::callers::soon;

/// Where updates are posted to. Answers 200 unless told otherwise.
pub(crate) struct Hooks {
    started: Instant,
    calls: Mutex<Vec<Call>>,
    answers: Mutex<VecDeque<Answer>>,
    called: Notify,
}

/// One call as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Since the receiver was made.
    pub(crate) at_ms: u64,
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// What the update says, in a word or two.
    pub(crate) fn gist(&self) -> String {
        let json = self.json();
        let state = |status: &serde_json::Value| status["state"].as_str().unwrap().to_owned();
        if let Some(task) = json.get("task") {
            format!("task {}", state(&task["status"]))
        } else if let Some(update) = json.get("statusUpdate") {
            state(&update["status"])
        } else {
            format!("artifact {}", json["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str().unwrap())
        }
    }
}

/// What the receiver does with a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Status(u16),
    Breaks,
    NeverAnswers,
}

impl Hooks {
    pub(crate) fn new() -> Arc<Self> {
        Self::answering([])
    }

    /// Answers the first calls like this, and all later ones with 200.
    pub(crate) fn answering(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            calls: Mutex::default(),
            answers: Mutex::new(answers.into_iter().collect()),
            called: Notify::new(),
        })
    }

    /// Waits until there were so many calls, and gives them all.
    pub(crate) async fn calls(&self, count: usize) -> Vec<Call> {
        soon(async {
            loop {
                let called = self.called.notified();
                let calls = self.calls.lock().unwrap().clone();
                if calls.len() >= count {
                    return calls;
                }
                called.await;
            }
        })
        .await
    }

    pub(crate) fn calls_so_far(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

impl Webhook for Hooks {
    fn check(&self, url: &str) -> Result<(), String> {
        if url.contains("private") { Err("points to a private address".to_owned()) } else { Ok(()) }
    }

    fn post(&self, call: WebhookCall) -> BoxFuture<'_, Result<u16, WebhookError>> {
        let at_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap();
        let WebhookCall { url, headers, body } = call;
        self.calls.lock().unwrap().push(Call { at_ms, url, headers, body });
        self.called.notify_waiters();
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(Answer::Status(200));
        Box::pin(async move {
            match answer {
                Answer::Status(status) => Ok(status),
                Answer::Breaks => Err(WebhookError::Failed("connection reset".to_owned())),
                Answer::NeverAnswers => std::future::pending().await,
            }
        })
    }
}
