//! Hints between nodes that share a store: lost, repeated, or overtaken by later ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{ContextId, TaskId};
use switchboard_engine::ports::{Hint, HintSink, Hints};

use super::journal::count;
use super::life::Life;
use super::weather::Weather;

/// Where the hints of all nodes meet.
#[derive(Default)]
pub(super) struct Bus(Mutex<BTreeMap<usize, Ear>>);

/// What listens on one node.
struct Ear {
    sink: Arc<dyn HintSink>,
    /// A hint that a later one will overtake.
    held_back: Option<Kept>,
}

struct Kept {
    task_id: TaskId,
    context_id: ContextId,
    first_seq: u64,
    events: Vec<Event>,
}

impl Bus {
    fn tell(&self, hint: Hint<'_>, weather: &Weather) {
        for ear in self.0.lock().unwrap().values_mut() {
            if weather.one_in(5) {
                count(&weather.journal.counts.hints_lost);
                continue;
            }
            if weather.one_in(8) {
                let (task_id, context_id) = (hint.task_id.clone(), hint.context_id.clone());
                let kept = Kept { task_id, context_id, first_seq: hint.first_seq, events: hint.events.to_vec() };
                ear.held_back = Some(kept);
                continue;
            }
            ear.sink.hint(hint);
            if weather.one_in(8) {
                ear.sink.hint(hint);
            }
            if let Some(Kept { task_id, context_id, first_seq, events }) = &ear.held_back.take() {
                ear.sink.hint(Hint { task_id, context_id, first_seq: *first_seq, events });
            }
        }
    }
}

/// The bus as one process sees it.
pub(super) struct NodeHints {
    pub(super) bus: Arc<Bus>,
    pub(super) life: Arc<Life>,
    pub(super) weather: Arc<Weather>,
}

impl Hints for NodeHints {
    fn notify(&self, hint: Hint<'_>) {
        self.weather.step(&self.life, "between a commit and its hint");
        if !self.life.is_dead() {
            self.bus.tell(hint, &self.weather);
        }
    }

    fn listen(&self, sink: Arc<dyn HintSink>) {
        self.bus.0.lock().unwrap().insert(self.life.node, Ear { sink, held_back: None });
    }
}
