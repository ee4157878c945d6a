//! Reference adapters for the ports: a bounded store, a clock that moves only by calls, and ids that count up.
//! `--memory` and the tests use the store; the clock and the ids make tests repeatable.

mod adapters;
mod audit;
mod calls;
mod deliveries;
mod due;
mod reads;
mod retain;
mod runs;
mod store;
mod tables;

pub use adapters::{CountingIds, LocalHints, ManualClock};
pub use store::{MemoryStore, STORAGE_BYTES_MAX_DEFAULT, TASKS_MAX_DEFAULT};

#[cfg(test)]
mod tests;
