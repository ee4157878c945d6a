//! What a turn knows of the calls that it has made to other agents.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::runs::RunEnd;

/// The calls of one turn in this process.
#[derive(Default)]
pub(in crate::runs) struct TurnCalls {
    state: Mutex<CallsState>,
}

#[derive(Default)]
pub(in crate::runs) struct CallsState {
    /// How often this attempt has made the same call.
    pub(in crate::runs) made: HashMap<String, u32>,
    pub(in crate::runs) count: usize,
    /// The calls that nobody has the answer of.
    pub(in crate::runs) open: Vec<String>,
    /// Set when the run has ended.
    pub(in crate::runs) ended: Option<RunEnd>,
}

impl TurnCalls {
    pub(in crate::runs) fn lock(&self) -> MutexGuard<'_, CallsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
