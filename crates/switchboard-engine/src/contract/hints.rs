//! What every carrier of hints must do, as named behaviours. A crate with one implements [`HintSubject`] and writes
//! `switchboard_engine::hints_contract!(make);`.
//!
//! Hints may be lost and repeated, so a behaviour that waits for one sends it until it comes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use switchboard_core::model::TaskId;
use tokio::time::Instant;

use crate::ports::{Hint, HintSink, Hints, News};

/// Hints between two processes.
pub trait HintSubject {
    fn first(&self) -> Arc<dyn Hints>;
    fn second(&self) -> Arc<dyn Hints>;
    /// Breaks the connections that carry hints, once.
    fn cut(&self);
}

/// Longer than a hint takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one hint is waited for before it is sent again.
const AGAIN: Duration = Duration::from_millis(100);

/// More than any behaviour sends.
const HEARD_MAX: usize = 100_000;

struct Sink(SyncSender<(String, News)>);

impl HintSink for Sink {
    fn hint(&self, hint: Hint<'_>) {
        let _ = self.0.try_send((hint.task.as_str().to_owned(), hint.news));
    }
}

fn heard_by(hints: &dyn Hints) -> Receiver<(String, News)> {
    let (sender, heard) = sync_channel(HEARD_MAX);
    hints.listen(Arc::new(Sink(sender)));
    heard
}

fn tell(hints: &dyn Hints, task: &str, news: News) {
    hints.notify(Hint { task: &TaskId::from(task), news });
}

/// Sends a hint until it is heard.
fn reach(hints: &dyn Hints, heard: &Receiver<(String, News)>, task: &str, news: News) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        tell(hints, task, news);
        while let Ok(told) = heard.recv_timeout(AGAIN) {
            if told == (task.to_owned(), news) {
                return;
            }
        }
        assert!(Instant::now() < deadline, "no hint arrives");
    }
}

/// # Panics
/// When the behaviour is another.
pub fn a_hint_reaches_the_other_and_not_its_sender(subject: &impl HintSubject) {
    let (first, second) = (subject.first(), subject.second());
    let (of_first, of_second) = (heard_by(&*first), heard_by(&*second));
    reach(&*first, &of_second, "from the first", News::Event(1));
    // What the first has sent has come round by now, and would be here before this one.
    reach(&*second, &of_first, "from the second", News::Event(2));
    let own: Vec<_> = of_first.try_iter().filter(|(task, _)| task == "from the first").collect();
    assert_eq!(own, []);
}

/// # Panics
/// When the behaviour is another.
pub fn everything_that_a_hint_can_say_arrives(subject: &impl HintSubject) {
    let (first, second) = (subject.first(), subject.second());
    let heard = heard_by(&*second);
    for news in [News::Event(1), News::Event(u64::MAX), News::Replied, News::CancelRequested] {
        reach(&*first, &heard, "018f2a3b-7c4d-7e5f-8a9b-0c1d2e3f4a5b", news);
        reach(&*first, &heard, "an id with spaces, ümläuts and \"quotes\" * > .", news);
    }
}

/// # Panics
/// When the behaviour is another.
pub fn of_many_hints_the_newest_of_each_task_arrives(subject: &impl HintSubject) {
    const TASKS: usize = 500;
    let (first, second) = (subject.first(), subject.second());
    let heard = heard_by(&*second);
    reach(&*first, &heard, "the connection is there", News::Event(1));
    for seq in 1..=5 {
        for task in 0..TASKS {
            tell(&*first, &format!("task {task} with a name that fills payloads"), News::Event(seq));
        }
    }
    let mut newest = BTreeMap::new();
    while newest.len() < TASKS || newest.values().any(|news| *news != News::Event(5)) {
        let (task, news) = heard.recv_timeout(PATIENCE).expect("every task is hinted at");
        if task.starts_with("task ") {
            newest.insert(task, news);
        }
    }
}

/// # Panics
/// When the behaviour is another.
pub fn hints_come_again_after_the_connection_was_lost(subject: &impl HintSubject) {
    let (first, second) = (subject.first(), subject.second());
    let heard = heard_by(&*second);
    for round in 1..=3 {
        reach(&*first, &heard, "t", News::Event(round));
        subject.cut();
    }
    reach(&*first, &heard, "t", News::Event(4));
}

/// One test per behaviour. `make` gives a fresh [`HintSubject`]. Attributes before it, such as `#[ignore]`, are those of each test.
#[macro_export]
macro_rules! hints_contract {
    ($(#[$meta:meta])* $make:path) => {
        $crate::hints_contract! { @each [$(#[$meta])*] $make:
            a_hint_reaches_the_other_and_not_its_sender,
            everything_that_a_hint_can_say_arrives,
            of_many_hints_the_newest_of_each_task_arrives,
            hints_come_again_after_the_connection_was_lost,
        }
    };
    (@each $meta:tt $make:path: $($behaviour:ident,)*) => {
        $($crate::hints_contract! { @one $meta $make, $behaviour })*
    };
    (@one [$($meta:tt)*] $make:path, $behaviour:ident) => {
        #[test]
        $($meta)*
        fn $behaviour() {
            $crate::contract::hints::$behaviour(&$make());
        }
    };
}
