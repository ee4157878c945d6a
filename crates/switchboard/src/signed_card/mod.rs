//! The bytes that a signature of an agent card is over (A2A 1.0, 8.4; RFC 7515, RFC 8785), for both sides: `client/signature` verifies
//! cards, `server/cards/signing` signs them. Neither keys nor signatures are here.
//!
//! A card may hold the members of 1.0 and of 0.3 side by side. Each version then has a signature over its own members, as a card
//! of that version alone would have it: the projection of the card to that version.

mod canonical;
mod schema;

#[cfg(feature = "client")]
pub(crate) use canonical::{Cover, Node, all_members, covered_members, forms};
#[cfg(feature = "server")]
pub(crate) use canonical::{Payload, payloads_of_0_3, payloads_of_1_0};

/// The value of `form` in the protected header of a signature that says nothing about empty members. Beside each there is one that
/// does, so that readers who know the difference skip it.
pub(crate) const NON_EMPTY: &str = "non-empty";
