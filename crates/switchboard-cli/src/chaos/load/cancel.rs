//! Clients that begin something and cancel it: work without end, and work that ends about then.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::super::client::Trouble;
use super::super::dice::Dice;
use super::super::ledger::Entry;
use super::super::wish::{Whom, Wish, is_terminal};
use super::{PAUSE, World, send};

pub(super) async fn canceler(world: Arc<World>, mut dice: Dice) {
    while !world.is_closing() {
        let (wish, wait_ms) = match dice.below(4) {
            0 => (Wish::Race { salt: dice.roll() }, dice.between(850, 1_050)),
            1 => (Wish::Endless { by_command: true }, dice.between(0, 900)),
            _ => (Wish::Endless { by_command: false }, dice.between(0, 900)),
        };
        let whom = wish.whom();
        let order = world.order(wish, dice.one_in(4)).await;
        let Some(task) = send::submit(&world, &order, true).await else { continue };
        let Some(id) = task["id"].as_str() else { continue };
        sleep(Duration::from_millis(wait_ms)).await;
        if dice.one_in(4) {
            // Cancel is idempotent, whoever asks.
            tokio::join!(cancel(&world, whom, id), cancel(&world, whom, id));
        } else {
            cancel(&world, whom, id).await;
        }
    }
}

/// Asks until the answer says how the task has ended.
async fn cancel(world: &World, whom: Whom, id: &str) {
    loop {
        let trouble = match world.client.call(whom, "CancelTask", &json!({"id": id}), None).await {
            Ok(task) => {
                let state = task["status"]["state"].as_str().unwrap_or_default();
                if is_terminal(state) {
                    return canceled(world, id, state).await;
                }
                // The server is going down; the intent is on record.
                Trouble::Busy
            }
            Err(Trouble::Refused(refusal)) if refusal.reason == "TASK_NOT_CANCELABLE" => {
                return canceled(world, id, refusal.state.as_deref().unwrap_or_default()).await;
            }
            Err(trouble) => trouble,
        };
        if !world.try_again("a cancel", trouble).await {
            return;
        }
        sleep(PAUSE).await;
    }
}

async fn canceled(world: &World, id: &str, state: &str) {
    world.ledger.record(Entry::Canceled { task: id.to_owned(), state: state.to_owned() }).await;
}
