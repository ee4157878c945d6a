//! Tests of the edge.
