//! What an agent may read besides its message: the tasks that the message refers to and, for agents that ask for it,
//! earlier messages of the same context. Only the caller's own tasks are read.

use std::sync::Arc;

use switchboard_core::lifecycle::Phase;
use switchboard_core::model::{Json, Measure, Message, Task, TaskId, TaskView, conversation};

use super::agent::Registered;
use super::turn::Background;
use crate::escaped::Escaped;
use crate::ports::store::{ListQuery, Scope, StoredTask};
use crate::state::EngineState;

impl EngineState {
    /// The background of a stored record's current turn.
    pub(crate) async fn background(&self, agent: &Registered, scope: &Scope, stored: &StoredTask) -> Background {
        match stored.folded.open_turns.first() {
            Some(inbound) => self.background_of(agent, scope, &stored.head.id, &inbound.message).await,
            None => Background::default(),
        }
    }

    /// The background of a message to the record with this id.
    pub(crate) async fn background_of(
        &self,
        agent: &Registered,
        scope: &Scope,
        id: &TaskId,
        message: &Message,
    ) -> Background {
        let (referenced, referenced_checkpoints) = self.referenced_by(scope, message).await;
        let messages_max = agent.source.traits().context_messages_max;
        let context = if messages_max == 0 { Vec::new() } else { self.context(scope, id, message, messages_max).await };
        Background { referenced, referenced_checkpoints, context }
    }

    /// The tasks that a message refers to, as far as they exist and belong to the caller. All together hold no more than a reply:
    /// what does not fit is a link, or an older message that is left out.
    async fn referenced_by(&self, scope: &Scope, message: &Message) -> (Vec<Arc<Task>>, Vec<(TaskId, Json)>) {
        let (mut found, mut checkpoints) = (Vec::new(), Vec::new());
        let mut left = self.limits.reply_bytes_max;
        for id in message.reference_task_ids.iter().take(self.limits.referenced_tasks_max) {
            let stored = self.store.task_view(scope, id, left, u32::MAX).await;
            match stored.map(|stored| stored.map(|stored| self.with_links(scope, stored))) {
                Ok(Some(stored)) if stored.head.phase == Phase::Live => {
                    let task = stored.folded.task.clone();
                    left = left.saturating_sub(Measure::ABOUT.task(&task, true));
                    let checkpoint = stored.folded.checkpoint.as_ref().or(stored.folded.earlier_checkpoint.as_ref());
                    checkpoints.extend(checkpoint.map(|checkpoint| (task.id.clone(), checkpoint.clone())));
                    found.push(task);
                }
                Ok(_) => tracing::debug!(
                    task = %Escaped::new(id.as_str()), "a message refers to a task that is not there"
                ),
                Err(error) => tracing::warn!(
                    task = %Escaped::new(id.as_str()), ?error, "a referenced task could not be read"
                ),
            }
        }
        (found, checkpoints)
    }

    /// The newest messages of the context's other tasks, oldest first, within the limits for their number and size. If
    /// they cannot be read, the agent works without them.
    async fn context(&self, scope: &Scope, id: &TaskId, message: &Message, messages_max: usize) -> Vec<Arc<Message>> {
        let Some(context_id) = &message.context_id else { return Vec::new() };
        let query = ListQuery {
            context_id: Some(context_id.clone()),
            state: None,
            status_since: None,
            page_size: self.limits.context_tasks_max,
            after: None,
            artifacts: true,
            bytes_max: self.limits.reply_bytes_max,
            history_max: None,
        };
        let page = match self.store.list(scope, &query).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(task = %id, ?error, "the context of a message could not be read");
                return Vec::new();
            }
        };
        let mut tasks: Vec<Arc<Task>> =
            page.tasks.into_iter().map(|stored| self.with_links(scope, stored).folded.task.clone()).collect();
        tasks.retain(|task| task.id != *id);
        tasks.sort_by_key(|task| task.created_at);
        let said = tasks.into_iter().flat_map(|task| conversation(&TaskView::whole(task)));
        newest(said.collect(), messages_max, self.limits.context_bytes_max)
    }
}

/// The last messages of a list, within limits for their number and size.
fn newest(mut said: Vec<Arc<Message>>, messages_max: usize, bytes_max: usize) -> Vec<Arc<Message>> {
    let mut left = bytes_max;
    let fits = |message: &&Arc<Message>| {
        let bytes: usize = message.parts.iter().map(|part| part.content_bytes()).sum();
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    let kept = said.iter().rev().take(messages_max).take_while(fits).count();
    said.split_off(said.len() - kept)
}

#[cfg(test)]
mod tests {
    use super::newest;
    use std::sync::Arc;
    use switchboard_core::model::{Message, Part, Role};

    #[test]
    fn the_newest_messages_are_kept_within_both_limits() {
        let said = |texts: &[&str]| -> Vec<Arc<Message>> {
            texts.iter().map(|text| Arc::new(Message::new(Role::User, *text, vec![Part::text(*text)]))).collect()
        };
        let all = ["one", "two", "three", "four"];
        assert_eq!(newest(said(&all), 10, 100), said(&all));
        assert_eq!(newest(said(&all), 2, 100), said(&["three", "four"]));
        assert_eq!(newest(said(&all), 10, 9), said(&["three", "four"]));
        assert_eq!(newest(said(&all), 10, 8), said(&["four"]));
        assert_eq!(newest(said(&all), 10, 3), said(&[]));
    }
}
