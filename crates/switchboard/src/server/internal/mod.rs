//! Routes for requests that a server posts to itself, so that work runs within a request of its own. A row of [`ROUTES`] says where such a
//! route is, what it is about and how it refuses; what it does is a [`Processor`]. Requests are not authenticated like those of
//! callers but by a token that is bound to the row they are about (`token`). `dispatch` posts them, if `settings` say so.
//!
//! `door` is for the programs that agents start, each with a token of its own.

pub(crate) mod dispatch;
pub(crate) mod door;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod token;

use std::sync::Arc;
use std::time::Duration;

use switchboard_engine::ports::Clock;

use crate::server::ports::Processor;
use token::InternalTokens;

/// A route of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InternalRoute {
    /// Starts the run of a task that an asynchronous send has enqueued.
    ProcessTask,
    /// Looks after a call of an agent that nobody waits for.
    ProcessContinuation,
}

/// What is particular to one route.
pub(crate) struct RouteRow {
    pub(crate) route: InternalRoute,
    /// Its path, as segments.
    pub(crate) path: &'static [&'static str],
    /// The member of the body that names the row.
    pub(crate) row_field: &'static str,
    /// What is answered to a token that does not fit.
    pub(crate) refusal: &'static str,
    /// How long the answer to a post may take before it is given up.
    pub(crate) post_time_max: Duration,
}

/// A task that was not started in this time is posted again by the sweeper.
const TASK_POST_MAX: Duration = Duration::from_secs(15);
/// A request may wait for the time of a continuation, and then looks at it and delivers.
const CONTINUATION_POST_MAX: Duration = Duration::from_secs(60);

/// Every route of this kind. They are found before the paths of agents, some of which begin in the same way.
pub(crate) static ROUTES: [RouteRow; 2] = [
    RouteRow {
        route: InternalRoute::ProcessTask,
        path: &["_agent-native", "a2a", "_process-task"],
        row_field: "taskId",
        refusal: "Invalid or expired processor token",
        post_time_max: TASK_POST_MAX,
    },
    RouteRow {
        route: InternalRoute::ProcessContinuation,
        path: &["_agent-native", "integrations", "process-a2a-continuation"],
        row_field: "continuationId",
        refusal: "Invalid or expired internal token",
        post_time_max: CONTINUATION_POST_MAX,
    },
];

impl InternalRoute {
    /// The route at this path.
    pub(crate) fn at(segments: &[&str]) -> Option<Self> {
        ROUTES.iter().find(|row| row.path == segments).map(|row| row.route)
    }

    pub(crate) fn row(self) -> &'static RouteRow {
        match self {
            Self::ProcessTask => &ROUTES[0],
            Self::ProcessContinuation => &ROUTES[1],
        }
    }
}

/// The internal routes of one server.
pub(crate) struct Internal {
    /// None without a secret: then every request is refused.
    pub(crate) tokens: Option<InternalTokens>,
    pub(crate) clock: Arc<dyn Clock>,
    /// None on a server that keeps no tasks itself.
    pub(crate) tasks: Option<Arc<dyn Processor>>,
    pub(crate) continuations: Option<Arc<dyn Processor>>,
}
