//! Tests of selectools.
