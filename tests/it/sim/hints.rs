//! Hints between nodes that share a store: lost, late, repeated, or overtaken by later ones. They carry no events.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::model::TaskId;
use switchboard_engine::ports::{Hint, HintSink, Hints, News};

use super::journal::count;
use super::life::Life;
use super::weather::{Weather, pass};

/// Where the hints of all nodes meet.
#[derive(Default)]
pub(super) struct Bus(Mutex<BTreeMap<usize, Ear>>);

/// What listens on one node.
struct Ear {
    sink: Arc<dyn HintSink>,
    /// A hint that a later one will overtake.
    held_back: Option<(TaskId, News)>,
}

/// What becomes of every hint; none is one that never comes.
pub(super) type Telling = for<'a> fn(Hint<'a>) -> Option<Hint<'a>>;

impl Bus {
    fn tell(&self, hint: Hint<'_>, weather: &Weather) {
        let kept = || (hint.task.clone(), hint.news);
        for ear in self.0.lock().unwrap().values_mut() {
            if weather.one_in(5) {
                count(&weather.journal.counts.hints_lost);
                continue;
            }
            if weather.one_in(8) {
                ear.held_back = Some(kept());
                continue;
            }
            if weather.one_in(8) {
                count(&weather.journal.counts.hints_late);
                let (sink, (task, news), ms) = (ear.sink.clone(), kept(), weather.below(4_000));
                tokio::spawn(async move {
                    pass(Duration::from_millis(ms)).await;
                    sink.hint(Hint { task: &task, news });
                });
                continue;
            }
            ear.sink.hint(hint);
            if weather.one_in(8) {
                count(&weather.journal.counts.hints_doubled);
                ear.sink.hint(hint);
            }
            if let Some((task, news)) = &ear.held_back.take() {
                ear.sink.hint(Hint { task, news: *news });
            }
        }
    }
}

/// The bus as one process sees it.
pub(super) struct NodeHints {
    pub(super) bus: Arc<Bus>,
    pub(super) telling: Telling,
    pub(super) life: Arc<Life>,
    pub(super) weather: Arc<Weather>,
}

impl Hints for NodeHints {
    fn notify(&self, hint: Hint<'_>) {
        self.weather.step(&self.life, "between a commit and its hint");
        if let Some(hint) = (self.telling)(hint).filter(|_| !self.life.is_dead()) {
            self.bus.tell(hint, &self.weather);
        }
    }

    fn listen(&self, sink: Arc<dyn HintSink>) {
        self.bus.0.lock().unwrap().insert(self.life.node, Ear { sink, held_back: None });
    }
}
