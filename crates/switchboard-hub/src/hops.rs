//! The hop guard: how often a message may be passed on from agent to agent, and that it never comes back to an agent that has
//! had it. It is part of the engine, which applies it to every [`Turn::call`](switchboard::Turn::call); relays and dispatch
//! use it here.
//!
//! ```
//! use switchboard_hub::hops::{HopError, Hops};
//!
//! // A message of a user: no hop yet. The agent `dispatch` passes it on to `mail`.
//! let sent = Hops::read(None).next("dispatch", "mail")?.metadata(None);
//!
//! // `mail` may ask `calendar`, but not `dispatch`, which waits for it.
//! let received = Hops::read(Some(&sent));
//! assert!(received.next("mail", "calendar").is_ok());
//! assert!(matches!(received.next("mail", "dispatch"), Err(HopError::Cycle { .. })));
//! # Ok::<(), HopError>(())
//! ```

pub use switchboard::hops::{HOP_NAME_CHARS_MAX, HOPS_MAX, Hop, HopError, Hops, is_agent_name};
