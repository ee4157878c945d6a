//! How far a move between two databases has come. Both have it while the move goes on, and no server opens a database that has it. The one
//! that was moved away keeps it.

use serde::{Deserialize, Serialize};

/// Which side of a move a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MoveRole {
    Source,
    Target,
    /// A mark that this build cannot read.
    Unknown,
}

/// What is stored of a move, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct MoveState {
    pub(crate) role: MoveRole,
    /// The same on both sides.
    pub(crate) id: String,
    /// The other side, for people.
    pub(crate) other: String,
    /// When it began. Claims of processes that are gone end at this time.
    pub(crate) at: i64,
    /// Of the target: what is being moved. Of the source: empty until all was moved.
    pub(crate) stage: String,
    /// Of the target: the row that was moved last, as JSON.
    pub(crate) cursor: String,
}

/// The stage after all rows were moved and compared.
pub(crate) const DONE: &str = "done";

impl MoveState {
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| Self {
            role: MoveRole::Unknown,
            id: String::new(),
            other: String::new(),
            at: 0,
            stage: String::new(),
            cursor: String::new(),
        })
    }

    /// Why a server does not open a database with this mark.
    pub(crate) fn refusal(&self) -> String {
        let other = &self.other;
        match self.role {
            MoveRole::Source if self.stage == DONE => format!(
                "its tasks were moved to {other}; serve that one (or, if it is given up, take this one into use again with \
                 `switchboard db move --reopen`)"
            ),
            MoveRole::Source => format!(
                "its tasks are being moved to {other}; go on with `switchboard db move`, or give it up with `switchboard db move --reopen`"
            ),
            MoveRole::Target => format!(
                "not everything was moved into it from {other} yet; go on with `switchboard db move`, or delete it with `switchboard db reset`"
            ),
            MoveRole::Unknown => {
                "it is part of a move that this build does not understand; use a newer build".to_owned()
            }
        }
    }
}
