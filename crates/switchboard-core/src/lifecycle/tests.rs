//! Lifecycle tests live here.
