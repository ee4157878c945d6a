//! The agents the binary brings along: one that shows the protocol off, and one that runs any command.

pub(crate) mod demo;
pub(crate) mod exec;
#[cfg(test)]
pub(crate) mod testing;
