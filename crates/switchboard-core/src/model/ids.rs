//! Names of things. Each is its own type, so that a context id cannot be passed where a task id is meant; each is
//! shared text, so that cloning one costs a counter.

use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text, as it stands on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether it is the empty text, which stands for none.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> Self {
                Self(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from("")
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

id! {
    /// A task's id: chosen by the server, never by a client.
    TaskId
}
id! {
    /// The conversation a task belongs to.
    ContextId
}
id! {
    /// Chosen by the author of a message.
    MessageId
}
id! {
    /// Unique within one task.
    ArtifactId
}
id! {
    /// A push configuration's id, unique within one task.
    ConfigId
}
id! {
    /// A customer's partition of the server; empty is the one tenant of a server that has none.
    Tenant
}
id! {
    /// Who calls, as proved by a credential; empty is the one anonymous principal.
    Principal
}
id! {
    /// Which of the agents of this process is meant.
    AgentName
}
