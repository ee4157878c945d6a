//! The tasks of the upstream in a run with relays: every message that the gateway accepted was executed by exactly one of them. The id of
//! a message at the upstream is the task at the gateway and the number of the turn.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::book::Book;
use super::client::{Client, Trouble};
use super::faults::{Faults, Kind};
use super::found::Found;
use super::wish::{CANCELED, Whom, Wish, is_terminal};

const PAGE: u64 = 100;
const LOOK: Duration = Duration::from_millis(200);

/// What the upstream was for, and what it has.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    /// The agents of the gateway whose work it does.
    pub(super) relayed: &'static [Whom],
    pub(super) executed: Vec<Executed>,
}

/// A task of the upstream.
#[derive(Clone, Debug)]
pub(super) struct Executed {
    pub(super) task: String,
    pub(super) whom: Whom,
    pub(super) state: String,
    /// The ids of the messages that it was sent.
    pub(super) messages: Vec<String>,
}

impl Executed {
    /// The task at the gateway that it is for.
    fn gateway_task(&self) -> Option<&str> {
        self.messages.first().and_then(|id| split(id)).map(|(task, _)| task)
    }
}

/// Reads every task, and waits for those that have not ended, for a while. A task whose caller has canceled it while the upstream was
/// away is canceled now. Also gives how many of those there were.
pub(super) async fn inspect(
    client: &Client,
    gateway: &BTreeMap<String, Found>,
    deadline: Instant,
) -> (Option<Vec<Executed>>, u64) {
    let mut left_over = 0;
    let mut executed = read_all(client, deadline).await;
    for task in executed.iter().flatten().filter(|task| is_left_over(task, gateway)) {
        left_over += 1;
        let _ = client.call(task.whom, "CancelTask", &json!({"id": task.task}), None).await;
    }
    while executed.iter().flatten().any(|task| !is_terminal(&task.state)) && Instant::now() < deadline {
        sleep(LOOK).await;
        executed = read_all(client, deadline).await;
    }
    (executed, left_over)
}

fn is_left_over(task: &Executed, gateway: &BTreeMap<String, Found>) -> bool {
    let found = task.gateway_task().and_then(|id| gateway.get(id));
    !is_terminal(&task.state) && matches!(found, Some(Found::There(shown)) if shown.state == CANCELED)
}

/// Every task of every agent; none if the upstream does not say.
async fn read_all(client: &Client, deadline: Instant) -> Option<Vec<Executed>> {
    let mut tasks = Vec::new();
    for whom in Whom::ALL {
        let mut token = String::new();
        loop {
            let asked = json!({"pageSize": PAGE, "historyLength": 10, "pageToken": token});
            let page = match client.call(whom, "ListTasks", &asked, None).await {
                Ok(page) => page,
                Err(Trouble::Refused(_)) => return None,
                Err(_) if Instant::now() > deadline => return None,
                Err(_) => {
                    sleep(LOOK).await;
                    continue;
                }
            };
            tasks.extend(page["tasks"].as_array().into_iter().flatten().map(|task| read(whom, task)));
            match page["nextPageToken"].as_str() {
                Some(next) if !next.is_empty() => token = next.to_owned(),
                _ => break,
            }
        }
    }
    Some(tasks)
}

fn read(whom: Whom, task: &Value) -> Executed {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let history = task["history"].as_array().into_iter().flatten();
    let sent = history.filter(|message| message["role"] == "ROLE_USER");
    Executed {
        task: text(&task["id"]),
        whom,
        state: text(&task["status"]["state"]),
        messages: sent.map(|message| text(&message["messageId"])).collect(),
    }
}

/// The task at the gateway, and the turn.
fn split(message: &str) -> Option<(&str, u32)> {
    let (task, turn) = message.rsplit_once('-')?;
    Some((task, turn.parse().ok()?))
}

/// Compares the tasks of the upstream with those of the gateway.
pub(super) fn check(book: &Book, gateway: &BTreeMap<String, Found>, upstream: &Upstream, faults: &mut Faults) {
    let Upstream { relayed, executed } = upstream;
    // By gateway task: the upstream's task of each turn.
    let mut turns: BTreeMap<&str, BTreeMap<u32, &str>> = BTreeMap::new();
    for task in executed {
        if task.messages.is_empty() {
            faults.add(Kind::WrongContent, 1, || format!("task {} of the upstream has no message", task.task));
        }
        for message in &task.messages {
            let known = split(message).filter(|(id, _)| book.tasks.contains_key(*id));
            let Some((id, turn)) = known else {
                faults.add(Kind::Duplicated, 1, || {
                    format!("task {} of the upstream is for {message}, which nobody was told of", task.task)
                });
                continue;
            };
            if let Some(other) = turns.entry(id).or_default().insert(turn, &task.task) {
                faults.add(Kind::Duplicated, 1, || {
                    format!("message {turn} of task {id} was executed by {other} and by {} of the upstream", task.task)
                });
            }
        }
        let is_open = !is_terminal(&task.state);
        faults
            .add(Kind::Stuck, is_open.into(), || format!("task {} of the upstream is still {}", task.task, task.state));
    }
    for (id, record) in book.tasks.iter().filter(|(_, record)| relayed.contains(&record.wish.whom())) {
        let Some(Found::There(shown)) = gateway.get(id) else { continue };
        // What was canceled may not have been sent.
        let is_sent = is_terminal(&shown.state) && shown.state != CANCELED;
        let wanted = if matches!(record.wish, Wish::Ask { .. }) { 2 } else { 1 };
        let of_task = turns.get(id.as_str());
        let missing = (1..=wanted).filter(|turn| of_task.is_none_or(|turns| !turns.contains_key(turn))).count();
        let missing = if is_sent { missing as u64 } else { 0 };
        faults.add(Kind::Lost, missing, || {
            format!("task {id} ({:?}) is {}, but the upstream has not executed it", record.wish, shown.state)
        });
        let differs = of_task.is_some_and(|turns| turns.values().any(|task| turns.get(&1) != Some(task)));
        faults.add(Kind::Duplicated, differs.into(), || {
            format!("the turns of task {id} are several tasks of the upstream")
        });
    }
}

#[cfg(test)]
#[path = "upstream_tests.rs"]
mod tests;
