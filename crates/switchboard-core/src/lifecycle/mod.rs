//! How a task moves. A [`Command`] is decided against the task's bounded [`Head`] into [`Event`]s ([`decide`]); events
//! are folded into the task that readers see ([`Folded`]); some of them are visible outside and numbered
//! ([`updates`]). All of it is pure: same input, same output.

mod decide;
mod event;
mod fold;

pub use decide::{
    ArtifactWrite, Bounds, Command, Opening, Refusal, RunCommand, StatusWrite, TurnEnd, WriteMode, decide, decide_onto,
};
pub use event::{Event, Inbound, StreamEnd, StreamKind, after_state, is_needed_to_fold, updates};
pub use fold::{ArtifactHead, AtCheckpoint, Folded, Head, Phase, Restoration, RestoredPiece};

#[cfg(test)]
mod tests;
