//! Hints on their way between processes, whatever carries them. Those that leave are gathered: of each task the newest is kept
//! until the carrier takes all that wait. Each payload has the name of its sender on the first line and a hint on each further one.
//!
//! A payload that cannot be read is ignored, because anybody who may write to the carrier can make one up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use switchboard_core::model::TaskId;
use switchboard_engine::ports::{Hint, HintSink, News};
use tokio::sync::Notify;

/// The hints of a task always go over the same channel.
pub(crate) const CHANNELS: u64 = 16;
/// Tasks whose hints wait at most; hints of more are lost.
const HINTS_WAITING_MAX: usize = 16_384;
/// The word in the place of a number that says that somebody wants the run of the task to stop. Builds that do not know it ignore it.
const CANCEL: &str = "cancel";

/// What waits to be sent, and who gets what is received.
pub(crate) struct HintBox {
    /// Hints of this process may come back, and are not passed on.
    sender: String,
    sink: OnceLock<Arc<dyn HintSink>>,
    waiting: Mutex<HashMap<TaskId, Waiting>>,
    has_waiting: Notify,
}

#[derive(Clone, Copy, Default)]
struct Waiting {
    /// The newest event; 0 if the record was closed by a direct reply.
    seq: Option<u64>,
    cancels: bool,
}

impl HintBox {
    pub(crate) fn new(sender: String) -> Self {
        Self { sender, sink: OnceLock::new(), waiting: Mutex::default(), has_waiting: Notify::new() }
    }

    pub(crate) fn listen(&self, sink: Arc<dyn HintSink>) {
        // It is called once.
        let _ = self.sink.set(sink);
    }

    pub(crate) fn put(&self, hint: Hint<'_>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= HINTS_WAITING_MAX && !waiting.contains_key(hint.task) {
            return;
        }
        let known = waiting.entry(hint.task.clone()).or_default();
        match hint.news {
            News::Event(seq) => known.seq = known.seq.max(Some(seq)),
            News::Replied => known.seq = known.seq.max(Some(0)),
            News::CancelRequested => known.cancels = true,
        }
        drop(waiting);
        self.has_waiting.notify_one();
    }

    /// Waits until there is something to send.
    pub(crate) async fn wait(&self) {
        self.has_waiting.notified().await;
    }

    /// Everything that waits, as channels and payloads of at most this many bytes.
    pub(crate) fn take(&self, payload_bytes_max: usize) -> Vec<(u64, String)> {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        let mut open: HashMap<u64, String> = HashMap::new();
        let mut full = Vec::new();
        for (task, hint) in waiting {
            let id = task.as_str();
            if id.chars().any(char::is_control) || id.len() > payload_bytes_max / 4 {
                // Such ids are not made by us; their followers poll.
                continue;
            }
            let mut lines = hint.seq.map(|seq| format!("\n{seq} {id}")).unwrap_or_default();
            if hint.cancels {
                lines.push_str(&format!("\n{CANCEL} {id}"));
            }
            let channel = crate::checksum::xxh64(id.as_bytes(), 0) % CHANNELS;
            let payload = open.entry(channel).or_insert_with(|| self.sender.clone());
            if payload.len() + lines.len() > payload_bytes_max {
                full.push((channel, std::mem::replace(payload, self.sender.clone())));
            }
            payload.push_str(&lines);
        }
        full.extend(open);
        full
    }

    /// Passes on the hints of a payload.
    pub(crate) fn received(&self, payload: &str) {
        let Some(sink) = self.sink.get() else { return };
        let mut lines = payload.split('\n');
        if lines.next() == Some(&self.sender) {
            return;
        }
        for line in lines {
            let Some((word, id)) = line.split_once(' ') else { continue };
            let news = match (word, word.parse()) {
                (CANCEL, _) => News::CancelRequested,
                (_, Ok(0)) => News::Replied,
                (_, Ok(seq)) => News::Event(seq),
                (_, Err(_)) => continue,
            };
            sink.hint(Hint { task: &TaskId::from(id), news });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Hint, HintBox, HintSink, Mutex, News, TaskId};

    #[derive(Default)]
    struct Heard(Mutex<Vec<(String, News)>>);

    impl HintSink for Heard {
        fn hint(&self, hint: Hint<'_>) {
            self.0.lock().unwrap().push((hint.task.as_str().to_owned(), hint.news));
        }
    }

    fn heard(payloads: &[&str]) -> Vec<(String, News)> {
        let (receiver, sink) = (HintBox::new("receiver".to_owned()), Arc::new(Heard::default()));
        receiver.listen(sink.clone());
        payloads.iter().for_each(|payload| receiver.received(payload));
        sink.0.lock().unwrap().clone()
    }

    #[test]
    fn of_each_task_the_newest_event_and_a_cancel_are_sent() {
        let sender = HintBox::new("sender".to_owned());
        let put = |task: &str, news| sender.put(Hint { task: &TaskId::from(task), news });
        put("a", News::Event(1));
        put("a", News::Event(3));
        put("a", News::CancelRequested);
        put("a", News::Event(2));
        put("b", News::Replied);
        put("with\nline", News::Event(1));
        let payloads = sender.take(1_000);
        let mut told = heard(&payloads.iter().map(|(_, payload)| &**payload).collect::<Vec<_>>());
        told.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [("a", News::Event(3)), ("a", News::CancelRequested), ("b", News::Replied)];
        assert_eq!(told, expected.map(|(task, news)| (task.to_owned(), news)));
        assert_eq!(sender.take(1_000), [], "they are sent once");
    }

    #[test]
    fn payloads_stay_within_their_limit_and_none_is_lost() {
        let sender = HintBox::new("sender".to_owned());
        for number in 0..1_000 {
            sender.put(Hint { task: &TaskId::from(&*format!("task {number}")), news: News::Event(number) });
        }
        let payloads = sender.take(200);
        assert!(payloads.iter().all(|(_, payload)| payload.len() <= 200));
        assert_eq!(heard(&payloads.iter().map(|(_, payload)| &**payload).collect::<Vec<_>>()).len(), 1_000);
    }

    #[test]
    fn what_is_no_hint_and_what_is_ones_own_is_ignored() {
        assert_eq!(
            heard(&["", "name", "name\nword", "name\nx y", "name\n99999999999999999999 t", "\n\n\n", "name\n-1 t"]),
            []
        );
        assert_eq!(heard(&["receiver\n1 t"]), []);
        assert_eq!(heard(&["sender\n1 t"]), [("t".to_owned(), News::Event(1))]);
    }

    #[test]
    fn fuzz_hint_payloads() {
        let corpus = [&b"name\n1 t\ncancel t\n0 u"[..], b"\n"].map(<[u8]>::to_vec);
        switchboard_fuzz::run("hint payloads", &corpus, |bytes| {
            heard(&[&String::from_utf8_lossy(bytes)]);
        });
    }
}
