//! restarts
