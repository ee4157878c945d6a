//! Lines for a shell that the demo agent puts into its answers: how to answer its question, how to go on with a stream that
//! broke. Most people read them in the JSON that curl printed, where quotes and backslashes are escaped, so the lines do
//! without both: pasted from there, or from a program that shows the text itself, they do the same.

use std::sync::{Arc, OnceLock};

/// Where a server is reached, shared with its agents: they are made before it has its port. Not known in a program without
/// one, such as a test.
#[derive(Clone, Default)]
pub(crate) struct ServedAt(Arc<OnceLock<Address>>);

impl ServedAt {
    /// Says where the server is reached. The first word counts.
    pub(crate) fn set(&self, address: Address) {
        let _ = self.0.set(address);
    }

    pub(super) fn get(&self) -> Option<&Address> {
        self.0.get()
    }
}

/// The address that callers use.
pub(crate) struct Address {
    /// Without a slash at its end.
    pub(crate) url: String,
    pub(crate) needs_token: bool,
}

impl Address {
    /// Answers the question of a task. `place` is the agent's path. None if an id could mean something to a shell: clients
    /// choose some of them.
    pub(super) fn answer_line(&self, place: &str, task: &str, context: &str) -> Option<String> {
        if !is_plain(task) || !is_plain(context) {
            return None;
        }
        let message = format!(
            "{{~message~:{{~messageId~:~answer-{task}~,~taskId~:~{task}~,~contextId~:~{context}~,\
             ~role~:~ROLE_USER~,~parts~:[{{~text~:~blue~}}]}}}}"
        );
        let (url, token) = (&self.url, self.token());
        Some(format!(
            "echo '{message}' | awk -v quote=%c '{{gsub(/~/,sprintf(quote,34))}}1' | \
             curl -sS {url}{place}/message:send -H 'A2A-Version: 1.0' -H 'Content-Type: application/json'{token} -d @-"
        ))
    }

    /// Goes on with the stream of a task after its first event.
    pub(super) fn resume_line(&self, place: &str, task: &str) -> Option<String> {
        let (url, token) = (&self.url, self.token());
        let line =
            format!("curl -sSN {url}{place}/tasks/{task}:subscribe -H 'A2A-Version: 1.0'{token} -H 'Last-Event-ID: 1'");
        is_plain(task).then_some(line)
    }

    fn token(&self) -> &'static str {
        if self.needs_token { " -H 'Authorization: Bearer '$TOKEN" } else { "" }
    }
}

fn is_plain(id: &str) -> bool {
    id.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._".contains(letter))
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
