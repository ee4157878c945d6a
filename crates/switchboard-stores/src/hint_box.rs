//! Hints on their way between processes, whatever carries them. Those that leave are gathered: of each task the newest is kept
//! until the carrier takes all that wait. Each payload has the name of its sender on the first line, with the time at which the first
//! of its hints was given, and a hint on each further one.
//!
//! A payload that cannot be read is ignored, because anybody who may write to the carrier can make one up.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use switchboard_core::model::TaskId;
use switchboard_engine::ports::store::COMMIT_MICROS_BOUNDS;
use switchboard_engine::ports::{Hint, HintSink, HintStats, News};
use switchboard_engine::system::now_ns;
use tokio::sync::Notify;

/// The hints of a task always go over the same channel.
pub(crate) const CHANNELS: u64 = 16;
/// Tasks whose hints wait at most; hints of more are lost.
const HINTS_WAITING_MAX: usize = 16_384;
/// A longer way says more about the clocks than about the hints, and is not counted.
const LAG_MICROS_MAX: u64 = 60_000_000;
/// The words in the place of a number that say that somebody wants the run of the task to stop, and that a process has given runs back.
/// Builds that do not know a word ignore it.
const CANCEL: &str = "cancel";
const RELEASED: &str = "released";

/// What waits to be sent, and who gets what is received.
pub(crate) struct HintBox {
    /// Hints of this process may come back, and are not passed on.
    sender: String,
    sink: OnceLock<Arc<dyn HintSink>>,
    waiting: Mutex<WaitingHints>,
    has_waiting: Notify,
    counted: Counted,
}

/// What waits to be sent.
#[derive(Default)]
struct WaitingHints {
    tasks: HashMap<TaskId, Waiting>,
    /// When the first of them was given, in microseconds since 1970.
    since_micros: u64,
}

#[derive(Default)]
struct Counted {
    seconds: [AtomicU64; 10],
    micros_sum: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Clone, Copy, Default)]
struct Waiting {
    /// The newest event; 0 if the record was closed by a direct reply.
    seq: Option<u64>,
    cancels: bool,
    releases: bool,
}

impl HintBox {
    pub(crate) fn new(sender: String) -> Self {
        Self {
            sender,
            sink: OnceLock::new(),
            waiting: Mutex::default(),
            has_waiting: Notify::new(),
            counted: Counted::default(),
        }
    }

    pub(crate) fn listen(&self, sink: Arc<dyn HintSink>) {
        // It is called once.
        let _ = self.sink.set(sink);
    }

    pub(crate) fn put(&self, hint: Hint<'_>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.tasks.len() >= HINTS_WAITING_MAX && !waiting.tasks.contains_key(hint.task) {
            self.counted.dropped.fetch_add(1, Relaxed);
            return;
        }
        if waiting.tasks.is_empty() {
            waiting.since_micros = now_micros();
        }
        let known = waiting.tasks.entry(hint.task.clone()).or_default();
        match hint.news {
            News::Event(seq) => known.seq = known.seq.max(Some(seq)),
            News::Replied => known.seq = known.seq.max(Some(0)),
            News::CancelRequested => known.cancels = true,
            News::RunsReleased => known.releases = true,
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
        let head = format!("{} {}", self.sender, waiting.since_micros);
        let mut open: HashMap<u64, String> = HashMap::new();
        let mut full = Vec::new();
        for (task, hint) in waiting.tasks {
            let id = task.as_str();
            if id.chars().any(char::is_control) || id.len() > payload_bytes_max / 4 {
                // Such ids are not made by us; their followers poll.
                continue;
            }
            let mut lines = hint.seq.map(|seq| format!("\n{seq} {id}")).unwrap_or_default();
            for (word, is_said) in [(CANCEL, hint.cancels), (RELEASED, hint.releases)] {
                if is_said {
                    lines.push_str(&format!("\n{word} {id}"));
                }
            }
            let channel = crate::checksum::xxh64(id.as_bytes(), 0) % CHANNELS;
            let payload = open.entry(channel).or_insert_with(|| head.clone());
            if payload.len() + lines.len() > payload_bytes_max {
                full.push((channel, std::mem::replace(payload, head.clone())));
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
        let head = lines.next().unwrap_or_default();
        let (sender, stamp) = head.split_once(' ').unwrap_or((head, ""));
        if let Ok(since_micros) = stamp.parse() {
            self.arrived(since_micros);
        }
        if sender == self.sender {
            return;
        }
        for line in lines {
            let Some((word, id)) = line.split_once(' ') else { continue };
            let news = match (word, word.parse()) {
                (CANCEL, _) => News::CancelRequested,
                (RELEASED, _) => News::RunsReleased,
                (_, Ok(0)) => News::Replied,
                (_, Ok(seq)) => News::Event(seq),
                (_, Err(_)) => continue,
            };
            sink.hint(Hint { task: &TaskId::from(id), news });
        }
    }

    /// Counts how long a payload was on its way. A stamp of the future comes from a clock that is ahead, or is made up.
    fn arrived(&self, since_micros: u64) {
        let Some(micros) = now_micros().checked_sub(since_micros).filter(|micros| *micros <= LAG_MICROS_MAX) else {
            return;
        };
        let place = COMMIT_MICROS_BOUNDS.partition_point(|bound| *bound < micros);
        self.counted.seconds[place].fetch_add(1, Relaxed);
        self.counted.micros_sum.fetch_add(micros, Relaxed);
    }

    pub(crate) fn stats(&self) -> HintStats {
        HintStats {
            seconds: std::array::from_fn(|place| self.counted.seconds[place].load(Relaxed)),
            micros_sum: self.counted.micros_sum.load(Relaxed),
            dropped: self.counted.dropped.load(Relaxed),
        }
    }
}

fn now_micros() -> u64 {
    now_ns() / 1_000
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
        put("a", News::RunsReleased);
        put("b", News::Replied);
        put("with\nline", News::Event(1));
        let payloads = sender.take(1_000);
        let mut told = heard(&payloads.iter().map(|(_, payload)| &**payload).collect::<Vec<_>>());
        told.sort_by(|a, b| a.0.cmp(&b.0));
        let expected =
            [("a", News::Event(3)), ("a", News::CancelRequested), ("a", News::RunsReleased), ("b", News::Replied)];
        assert_eq!(told, expected.map(|(task, news)| (task.to_owned(), news)));
        assert_eq!(sender.take(1_000), [], "they are sent once");
    }

    #[test]
    fn how_long_a_payload_was_on_its_way_is_counted_at_both_ends() {
        let sender = HintBox::new("sender".to_owned());
        sender.put(Hint { task: &TaskId::from("a"), news: News::Event(1) });
        let payloads = sender.take(1_000);
        let receiver = HintBox::new("receiver".to_owned());
        let future = format!("sender {}\n1 a", super::now_micros() + 3_600_000_000);
        for end in [&sender, &receiver] {
            end.listen(Arc::new(Heard::default()));
            end.received(&payloads[0].1);
            end.received("sender 12\n1 a");
            end.received(&future);
            end.received("sender\n1 a");
            assert_eq!(end.stats().seconds.iter().sum::<u64>(), 1, "an old stamp and one of the future say nothing");
        }
    }

    #[test]
    fn hints_that_are_not_sent_are_counted() {
        let sender = HintBox::new("sender".to_owned());
        for number in 0..=super::HINTS_WAITING_MAX {
            sender.put(Hint { task: &TaskId::from(&*number.to_string()), news: News::Event(1) });
        }
        assert_eq!(sender.stats().dropped, 1);
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
        assert_eq!(heard(&["receiver\n1 t", "receiver 17\n1 t"]), []);
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
