//! How a task moves. A [`Command`] is decided against the task's bounded [`Head`] into [`Event`]s ([`decide`]); events
//! are folded into the task that readers see ([`Folded`]); some of them are visible outside and numbered
//! ([`updates`]). All of it is pure: same input, same output.

mod command;
mod decide;
mod event;
mod fold;
mod head;
mod restore;
mod visible;

pub use command::{ArtifactWrite, Command, Opening, RunCommand, StatusWrite, TurnEnd, WriteMode};
pub use decide::{Bounds, Refusal, decide, decide_onto};
pub use event::{Event, Inbound, is_needed_to_fold};
pub use fold::Folded;
pub use head::{ArtifactHead, AtCheckpoint, Head, Phase};
pub use restore::{Restoration, RestoredPiece};
pub use visible::{StreamEnd, StreamKind, after_state, updates};

#[cfg(test)]
mod tests;
