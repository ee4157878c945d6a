//! What is done in a run, and what was seen of it.

use std::time::Duration;

use super::behind::BehindSeen;
use super::checker::Evidence;
use super::killer::Deeds;
use super::wish::Whom;

/// What is done to whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Plot {
    /// Nothing, to one server.
    Peace,
    /// One server is killed and frozen.
    #[default]
    Server,
    /// A gateway and its upstream are, and the network between them is cut.
    Relay,
    /// Several servers are that share a database, and their upstream, and the network between all of them is cut.
    #[cfg(feature = "postgres")]
    Replicas,
}

impl Plot {
    /// The agents whose work an upstream does.
    pub(super) fn relayed(self) -> &'static [Whom] {
        match self {
            Self::Peace | Self::Server => &[],
            Self::Relay => &Whom::ALL,
            #[cfg(feature = "postgres")]
            Self::Replicas => &[Whom::Command],
        }
    }
}

/// What a run is counted by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) kills: u64,
    pub(super) acknowledged: u64,
    pub(super) resumed: u64,
    pub(super) webhooks_repeated: u64,
    pub(super) kills_felt: u64,
    /// These two only in a run with relays.
    pub(super) upstream_kills: u64,
    pub(super) cuts: u64,
    /// Cuts of links to the database that several servers share; none if there are no links that can be cut.
    pub(super) database_cuts: Option<u64>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Performance {
    pub(super) plot: Plot,
    /// How long it was to last, and how long it lasted.
    pub(super) asked: Duration,
    pub(super) length: Duration,
    pub(super) counts: Counts,
    pub(super) deeds: Deeds,
    /// What was done to the upstream, in a run with relays.
    pub(super) behind: BehindSeen,
    pub(super) requests: u64,
    pub(super) evidence: Evidence,
}
