//! Clients that send and wait for the answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::super::dice::Dice;
use super::super::ledger::{Entry, digest};
use super::super::wish::{INPUT_REQUIRED, Wish, is_terminal};
use super::{Order, PAUSE, Unanswered, World, message};

pub(super) async fn sender(world: Arc<World>, mut dice: Dice) {
    while !world.is_closing() {
        let wish = draw(&mut dice);
        let order = world.order(wish, dice.one_in(12)).await;
        if let Some(task) = submit_and_wait(&world, &order).await {
            told(&world, &task).await;
            if let (Some(answer), Some(id)) = (order.wish.answer(), asks(&task)) {
                reply(&world, &order, id, &answer).await;
            }
        }
        sleep(Duration::from_millis(dice.between(5, 25))).await;
    }
}

fn draw(dice: &mut Dice) -> Wish {
    let salt = dice.roll();
    match dice.below(24) {
        0 => Wish::Fail { salt },
        1 | 2 => Wish::Ask { salt },
        // Beyond what is kept in a record of the log.
        3 => Wish::Echo { salt, bytes: 40_000 },
        4 => Wish::Echo { salt, bytes: 5_000 },
        _ => Wish::Echo { salt, bytes: usize::try_from(dice.between(20, 400)).unwrap_or(400) },
    }
}

/// Sends until there is an answer: the task.
pub(super) async fn submit(world: &World, order: &Order, return_immediately: bool) -> Option<Value> {
    let send = order.send(world.hooks, return_immediately);
    let task = answered(world, order, &send, &order.key()).await?;
    match task["id"].as_str() {
        Some(id) => world.accepted(order, id).await,
        None => {
            world.complain(format!("a send was answered without a task: {task}"));
            return None;
        }
    }
    Some(task)
}

/// Sends until the answer is a task at rest: a server that is stopped in order answers with the task as it is.
async fn submit_and_wait(world: &World, order: &Order) -> Option<Value> {
    let mut task = submit(world, order, false).await?;
    let first = task["id"].clone();
    while !is_at_rest(&task) && !world.is_over() {
        sleep(PAUSE).await;
        task = answered(world, order, &order.send(world.hooks, false), &order.key()).await?;
        if let Some(other) = task["id"].as_str().filter(|id| first != *id) {
            // The checker finds it.
            world.accepted(order, other).await;
        }
    }
    Some(task)
}

/// Sends the second message of a task.
async fn reply(world: &World, order: &Order, id: &str, text: &str) {
    let send = json!({"message": message(&format!("m-{}-answer", order.n), text, Some(id))});
    if let Some(task) = answered(world, order, &send, &format!("{}-answer", order.key())).await {
        world.ledger.record(Entry::Continued { task: id.to_owned() }).await;
        told(world, &task).await;
    }
}

async fn answered(world: &World, order: &Order, send: &Value, key: &str) -> Option<Value> {
    loop {
        let unanswered = Unanswered::new(world);
        let result = world.client.call(order.wish.whom(), "SendMessage", send, Some(key)).await;
        match unanswered.ended(result) {
            Ok(mut sent) => return Some(sent["task"].take()),
            Err(trouble) => {
                if !world.try_again("a send", trouble).await {
                    return None;
                }
            }
        }
    }
}

/// Writes down what an answer says about a task that has come to rest.
pub(super) async fn told(world: &World, task: &Value) {
    let (Some(id), Some(state)) = (task["id"].as_str(), task["status"]["state"].as_str()) else { return };
    if is_at_rest(task) {
        let digest = digest(artifacts_text(task).as_bytes());
        world.ledger.record(Entry::Told { task: id.to_owned(), state: state.to_owned(), digest }).await;
    }
}

/// Whether a task has ended, or waits for an answer.
fn is_at_rest(task: &Value) -> bool {
    task["status"]["state"].as_str().is_some_and(|state| is_terminal(state) || state == INPUT_REQUIRED)
}

/// The id of a task that waits for an answer.
fn asks(task: &Value) -> Option<&str> {
    (task["status"]["state"] == INPUT_REQUIRED).then(|| task["id"].as_str())?
}

/// All text in all artifacts of a task, in order.
pub(crate) fn artifacts_text(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    artifacts.map(parts_text).collect()
}

/// All text in the parts of an artifact or message.
pub(crate) fn parts_text(of: &Value) -> String {
    of["parts"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
}
