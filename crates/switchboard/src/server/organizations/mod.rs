//! The secrets of organizations over HTTP (`/_agent-native/org/a2a-secret`): operators read and replace them and have them passed on to
//! the other apps, and another app passes one on to this server. Paths and answers are those of agent-native. Who passes a secret on proves
//! itself by a token under a secret of the same organization that this server has.

pub(crate) mod serve;

use std::fmt;
use std::sync::Arc;

use switchboard_core::call::BoxFuture;

use super::authentication::SharedSecret;
use super::uri::RESERVED;

/// Passes the secret of an organization on to its other apps. Set by
/// [`ServerBuilder::org_peers`](crate::ServerBuilder::org_peers); the directory of `switchboard-hub` is one.
pub trait OrgPeers: Send + Sync + 'static {
    /// Tells every app, and says what came of each.
    fn push<'a>(&'a self, secret: &'a OrgSecretPush) -> BoxFuture<'a, Vec<OrgSecretPushed>>;
}

/// The secret of an organization on its way to other apps.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrgSecretPush {
    /// The operator who has asked for it.
    pub user: String,
    /// The domain of the organization.
    pub org_domain: String,
    /// The secret that is passed on.
    pub secret: String,
    /// The secrets that the apps may know the organization by, in the order in which they are tried.
    pub sign_with: Vec<String>,
}

impl fmt::Debug for OrgSecretPush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrgSecretPush").field("org_domain", &self.org_domain).finish_non_exhaustive()
    }
}

/// What an app has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrgSecretPushed {
    /// The id of the app.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// The status of its answer; none if there was none.
    pub status: Option<u16>,
    /// Why it has not taken the secret; none if it has.
    pub error: Option<String>,
}

/// What a path of this kind is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrgRoute {
    /// Shows the secret, or replaces it.
    Secret,
    /// Passes it on to the other apps.
    Sync,
    /// Takes one that another app passes on.
    Receive,
}

impl OrgRoute {
    /// The route at this path, which may be below the address of an app.
    pub(crate) fn at(segments: &[&str]) -> Option<Self> {
        let below = match segments {
            ["_agent-native", ..] => segments,
            ["agents" | "apps", _, below @ ..] => below,
            [name, below @ ..] if !RESERVED.contains(name) => below,
            _ => return None,
        };
        match below.strip_prefix(&["_agent-native", "org", "a2a-secret"])? {
            [] => Some(Self::Secret),
            ["sync"] => Some(Self::Sync),
            ["receive"] => Some(Self::Receive),
            _ => None,
        }
    }
}

/// The organizations of one server.
pub(crate) struct Organizations {
    /// None if no caller signs tokens with a shared secret.
    pub(crate) secrets: Option<SharedSecret>,
    pub(crate) peers: Option<Arc<dyn OrgPeers>>,
}
