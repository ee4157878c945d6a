//! Tests of the memory store live here.
