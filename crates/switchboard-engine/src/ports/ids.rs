//! Where unguessable names come from.

pub trait Ids: Send + Sync {
    /// A fresh UUID in text form. Task and context ids must not be guessable, so an adapter for production draws them
    /// from the system's randomness.
    fn uuid(&self) -> String;
}
