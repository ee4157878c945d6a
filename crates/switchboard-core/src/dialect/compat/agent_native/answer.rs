//! Finds the answer of a task. In the model an agent answers with artifacts; agent-native clients look for the answer
//! in the status.

use std::sync::Arc;

use crate::model::{Artifact, Message, Part, PartContent, Role, Task, TaskView};

/// The answer of a task as a message: what its status says, or else what its artifacts say in words.
pub(super) fn answer(task: &Task) -> Option<Arc<Message>> {
    if task.status.message.is_some() || task.state().is_interrupted() {
        return task.status.message.clone();
    }
    let texts: Vec<Part> = task.artifacts.iter().flat_map(|artifact| &artifact.parts).filter_map(text_of).collect();
    if texts.is_empty() {
        return None;
    }
    let mut message = Message::new(Role::Agent, format!("{}-answer", task.id), joined(texts));
    message.context_id = Some(task.context_id.clone());
    message.task_id = Some(task.id.clone());
    Some(Arc::new(message))
}

fn text_of(part: &Part) -> Option<Part> {
    part.as_text().map(Part::text)
}

/// Chunks of a streamed text are one text; readers here would put a line break between parts.
fn joined(texts: Vec<Part>) -> Vec<Part> {
    let whole: String = texts.iter().filter_map(Part::as_text).collect();
    vec![Part::text(whole)]
}

/// Whether an artifact is told in full by the answer made of it.
pub(super) fn is_told_by_answer(task: &Task, artifact: &Artifact) -> bool {
    let all_text = artifact.parts.iter().all(|part| matches!(part.content, PartContent::Text(_)));
    task.status.message.is_none() && artifact.name.is_none() && all_text
}

/// The task with its answer in the status as well, for readers who look there and read `kind` or `type` alike. Only a task
/// that has completed has an answer.
#[must_use]
pub fn with_answer_in_status(view: TaskView) -> TaskView {
    let task = &view.task;
    if !task.state().is_terminal() || task.status.message.is_some() {
        return view;
    }
    let Some(answer) = answer(task) else { return view };
    let mut task = Task::clone(task);
    task.status.message = Some(answer);
    TaskView { task: Arc::new(task), ..view }
}
