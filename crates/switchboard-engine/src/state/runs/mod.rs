//! What is kept about runs: which of them are at work (`registry`), those that their callers poll (`attached`), the slots that
//! they wait for (`fair_slots`), the posts that start them (`self_fire`), what their agents declare (`traits`), and how they end
//! (`ending`). The runs themselves are in `crate::runs`.
#![warn(missing_docs, missing_debug_implementations)]

mod attached;
mod ending;
mod fair_slots;
mod registry;
mod self_fire;
mod traits;

pub use ending::{Histogram, MICROS_BOUNDS, RunCounters, RunEnd};
pub use traits::{Backoff, Effects, ErrorDetails, Idempotency, Recovery, Replies, Traits};

pub(crate) use attached::{AttachedRun, StreamedRun, StreamedRuns, Writes, Writing};
pub(crate) use fair_slots::{FairSlot, FairSlots};
pub(crate) use registry::{Guard, HeldRun, RunRegistry};
pub(crate) use self_fire::SelfFire;
