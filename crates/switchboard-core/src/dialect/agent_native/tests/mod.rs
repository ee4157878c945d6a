//! Tests of agent-native.
