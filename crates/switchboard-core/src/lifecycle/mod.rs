//! How a task moves. A [`Command`] is decided against the task's bounded [`Head`] into [`Event`]s ([`decide`]); events
//! are folded into the task that readers see ([`Folded`]); some of them are visible outside and numbered
//! ([`updates`]). All of it is pure: same input, same output.

mod decide;
mod event;

pub use decide::{
    ArtifactWrite, Bounds, Command, Opening, Refusal, RunCommand, StatusWrite, TurnEnd, decide, decide_onto,
};
pub use event::{
    ArtifactHead, AtCheckpoint, Event, Folded, Head, Inbound, Phase, Restoration, RestoredPiece, StreamEnd, StreamKind,
    WriteMode, after_state, is_needed_to_fold, updates,
};

#[cfg(test)]
mod tests;
