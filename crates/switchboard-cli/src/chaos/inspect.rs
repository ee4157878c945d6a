//! Asks the server about every task: as it is, and its whole log. Waits for those that have not ended, for a while.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::checker::Evidence;
use super::client::{Client, Events, Next, Trouble};
use super::crew::Crew;
use super::found::{Found, Logged, Shown, Text};
use super::ledger::digest;
use super::load::{Known, artifacts_text, parts_text};
use super::wish::{Whom, is_terminal};

const INSPECTORS: usize = 16;
const LOOK: Duration = Duration::from_millis(100);
/// How long is asked at least.
const LAST_CHANCE: Duration = Duration::from_secs(5);
/// How long the log of a task is read that will not end.
const STUCK_LOG_WAIT: Duration = Duration::from_secs(2);

/// Asks about all of them; those that have not ended by the deadline are taken as they are.
pub(super) async fn inspect(client: Arc<Client>, tasks: Vec<Known>, deadline: Instant) -> Evidence {
    let listed = listed(&client).await;
    let shared = Arc::new(Shared { client, tasks, next: AtomicUsize::new(0), found: Mutex::default(), deadline });
    let mut crew = Crew::new();
    for _ in 0..INSPECTORS {
        crew.add(inspector(shared.clone()));
    }
    crew.all_leave().await;
    let tasks = std::mem::take(&mut *shared.found.lock().unwrap_or_else(PoisonError::into_inner));
    Evidence { tasks, listed, ..Evidence::default() }
}

struct Shared {
    client: Arc<Client>,
    tasks: Vec<Known>,
    next: AtomicUsize,
    found: Mutex<BTreeMap<String, Found>>,
    deadline: Instant,
}

async fn inspector(shared: Arc<Shared>) {
    while let Some(known) = shared.tasks.get(shared.next.fetch_add(1, Ordering::Relaxed)) {
        let found = look(&shared.client, known, shared.deadline).await;
        shared.found.lock().unwrap_or_else(PoisonError::into_inner).insert(known.task.clone(), found);
    }
}

/// How many tasks there are, of all agents.
async fn listed(client: &Client) -> Option<u64> {
    let mut sum = 0;
    for whom in Whom::ALL {
        let page = client.call(whom, "ListTasks", &json!({"pageSize": 1}), None).await.ok()?;
        sum += page["totalSize"].as_u64()?;
    }
    Some(sum)
}

async fn look(client: &Client, known: &Known, deadline: Instant) -> Found {
    // There may be very many: the last one has its chance, too.
    let deadline = deadline.max(Instant::now() + LAST_CHANCE);
    let mut shown = loop {
        let late = Instant::now() > deadline;
        match client.call(known.whom, "GetTask", &json!({"id": known.task}), None).await {
            Ok(task) => {
                let shown = shown(&task);
                if is_terminal(&shown.state) || late {
                    break shown;
                }
            }
            Err(Trouble::Refused(refusal)) if refusal.reason == "TASK_NOT_FOUND" => return Found::Missing,
            Err(Trouble::Refused(refusal)) => return Found::Unreadable(refusal.text),
            Err(trouble) if late => return Found::Unreadable(format!("{trouble:?}")),
            Err(_) => {}
        }
        sleep(LOOK).await;
    };
    match client.subscribe(known.whom, &known.task, 0).await {
        Ok(events) => read_log(events, &mut shown).await,
        Err(trouble) => shown.log_trouble = Some(format!("{trouble:?}")),
    }
    Found::There(shown)
}

fn shown(task: &Value) -> Shown {
    Shown {
        state: task["status"]["state"].as_str().unwrap_or_default().to_owned(),
        artifacts: Text::of(&artifacts_text(task)),
        status: parts_text(&task["status"]["message"]),
        ..Shown::default()
    }
}

async fn read_log(mut events: Events, shown: &mut Shown) {
    let mut artifacts: Vec<(String, String)> = Vec::new();
    let patience = if is_terminal(&shown.state) { Duration::from_secs(60) } else { STUCK_LOG_WAIT };
    loop {
        match timeout(patience, events.next()).await {
            Ok(Next::Event { seq, data }) => {
                let event: Value = serde_json::from_slice(&data).unwrap_or_default();
                let state = event["statusUpdate"]["status"]["state"].as_str().map(str::to_owned);
                assemble(&event["artifactUpdate"], &mut artifacts);
                shown.log.push(Logged { seq, digest: digest(&data), state });
            }
            Ok(Next::End) => break,
            Ok(Next::Broken) | Err(_) => {
                shown.log_trouble = Some("the stream broke, or did not end".to_owned());
                break;
            }
            Ok(Next::Wrong(what)) => {
                shown.log_trouble = Some(what);
                break;
            }
        }
    }
    shown.assembled = Text::of(&artifacts.into_iter().map(|(_, text)| text).collect::<String>());
}

/// Puts artifacts together as a client must: a piece without `append` begins anew.
fn assemble(update: &Value, artifacts: &mut Vec<(String, String)>) {
    let Some(id) = update["artifact"]["artifactId"].as_str() else { return };
    let text = parts_text(&update["artifact"]);
    let place = artifacts.iter().position(|(known, _)| known == id).unwrap_or_else(|| {
        artifacts.push((id.to_owned(), String::new()));
        artifacts.len() - 1
    });
    if update["append"] != true {
        artifacts[place].1.clear();
    }
    artifacts[place].1.push_str(&text);
}
