//! How the model is spelled on the wire. A dialect is a pure translator in a folder of its own; adding one adds a
//! folder, a variant here and a row in `codes`, and changes nothing else. Dialects do not import each other.

pub mod codes;
pub mod detect;
pub mod json;
pub mod v1_0;

pub use crate::model::Dialect;
