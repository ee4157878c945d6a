//! A webhook receiver without a socket: notes every call and answers as it was told to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use switchboard_core::call::BoxFuture;
use switchboard_core::model::TaskId;
use switchboard_engine::ports::{Webhook, WebhookAnswer, WebhookCall, WebhookError};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::callers::soon;

/// Where updates are posted to. Answers 200 unless told otherwise.
pub(crate) struct Hooks {
    started: Instant,
    calls: Mutex<Vec<Call>>,
    answers: Mutex<VecDeque<Answer>>,
    /// What URLs that contain a text are answered, the last rule first.
    rules: Mutex<Vec<(String, Answer)>>,
    at_once: Mutex<AtOnce>,
    called: Notify,
}

/// Calls that were not answered yet, by URL, and the most there have been.
#[derive(Default)]
struct AtOnce {
    now: BTreeMap<String, usize>,
    most: BTreeMap<String, usize>,
}

/// One call as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Since the receiver was made.
    pub(crate) at_ms: u64,
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    /// Whether it was answered 200.
    pub(crate) taken: bool,
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
    /// The status, after a second.
    Late(u16),
    /// The status, and how many milliseconds it wants to be left alone.
    Busy(u16, u64),
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
            rules: Mutex::default(),
            at_once: Mutex::default(),
            called: Notify::new(),
        })
    }

    /// From now on, calls to URLs that contain this are answered so.
    pub(crate) fn always(&self, part: &str, answer: Answer) {
        self.rules.lock().unwrap().insert(0, (part.to_owned(), answer));
    }

    /// The numbers of a task's updates that were taken, in order.
    pub(crate) fn taken_of(&self, task_id: &TaskId) -> Vec<u64> {
        let calls = self.calls.lock().unwrap();
        let mine = calls
            .iter()
            .filter(|call| call.taken && call.header("a2a-delivery-id").unwrap().starts_with(task_id.as_str()));
        mine.map(|call| call.header("a2a-delivery-seq").unwrap().parse().unwrap()).collect()
    }

    /// How many calls were taken.
    pub(crate) fn taken(&self) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| call.taken).count()
    }

    /// The most calls to this URL that waited for their answer together, since the last time this was asked.
    pub(crate) fn most_at_once(&self, url: &str) -> usize {
        self.at_once.lock().unwrap().most.remove(url).unwrap_or(0)
    }

    /// Waits until it is so.
    pub(crate) async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        soon(async {
            loop {
                let called = self.called.notified();
                if is_so(self) {
                    return;
                }
                called.await;
            }
        })
        .await;
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

    fn post(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, WebhookError>> {
        let at_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap();
        let WebhookCall { url, headers, body, .. } = call;
        let rule = self.rules.lock().unwrap().iter().find(|(part, _)| url.contains(part)).map(|(_, answer)| *answer);
        let answer = self.answers.lock().unwrap().pop_front().or(rule).unwrap_or(Answer::Status(200));
        let taken = matches!(answer, Answer::Status(200) | Answer::Late(200));
        let waiting = Waiting::begin(self, &url);
        self.calls.lock().unwrap().push(Call { at_ms, url, headers, body, taken });
        self.called.notify_waiters();
        Box::pin(async move {
            let _waiting = waiting;
            match answer {
                Answer::Status(status) => Ok(status.into()),
                Answer::Busy(status, ms) => Ok(WebhookAnswer { status, retry_after_ms: Some(ms) }),
                Answer::Late(status) => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(status.into())
                }
                Answer::Breaks => Err(WebhookError::Failed("connection reset".to_owned())),
                Answer::NeverAnswers => std::future::pending().await,
            }
        })
    }
}

/// A call that was not answered yet.
struct Waiting<'a> {
    hooks: &'a Hooks,
    url: String,
}

impl<'a> Waiting<'a> {
    fn begin(hooks: &'a Hooks, url: &str) -> Self {
        let AtOnce { now, most } = &mut *hooks.at_once.lock().unwrap();
        let count = now.entry(url.to_owned()).or_default();
        *count += 1;
        let most = most.entry(url.to_owned()).or_default();
        *most = (*most).max(*count);
        Self { hooks, url: url.to_owned() }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        *self.hooks.at_once.lock().unwrap().now.entry(self.url.clone()).or_default() -= 1;
    }
}
