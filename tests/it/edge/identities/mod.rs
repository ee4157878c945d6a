//! Who callers are, by every kind of credential: what is let in and what is not at each operation, where credentials may stand, what
//! the cards say about it, and how streams end with their credential.

mod cards;
mod certificates;
mod matrix;
mod places;
mod providers;
mod reloads;
mod skills;
mod streams;
