//! Reference adapters for the ports: a bounded store, a clock that moves only by calls, ids that count up, and hints
//! that go nowhere. `--memory` and the tests use the store; the clock and the ids make tests repeatable.

mod accepted_task;
mod adapters;
mod artifacts;
mod deliveries;
mod list;
mod outbox;
mod retain;
mod runs;
mod store;
mod tables;

pub use adapters::{CountingIds, ManualClock, NoHints};
pub use store::{MemoryStore, TASKS_MAX_DEFAULT};

#[cfg(test)]
mod tests;
