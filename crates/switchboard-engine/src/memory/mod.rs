//! Reference adapters for the ports: a bounded store, a clock that only moves when told, ids that count, and hints
//! that nobody gets. The store serves `--memory` and the tests; the clock and the ids make a run repeatable.

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
