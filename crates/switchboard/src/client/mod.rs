//! Calls to other agents.

mod credentials;

pub use credentials::Credentials;

/// What a call to a remote agent has beside what calls to every agent have.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteOptions {
    /// In place of the client's.
    pub(crate) credentials: Option<Credentials>,
}
