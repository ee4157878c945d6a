//! Agents: one that a test plays by hand, turn by turn, and small ones from a function.

use std::sync::Arc;

use switchboard_engine::runs::{Agent, AgentError, AgentSource, Traits, Turn};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::callers::soon;

/// An agent from a function, with what it declares.
pub(crate) fn from_fn<F, Fut>(traits: Traits, run: F) -> AgentSource
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), AgentError>> + Send + 'static,
{
    AgentSource::shared(FnAgent { traits, run })
}

/// Answers with the text of the message.
pub(crate) fn echo() -> AgentSource {
    from_fn(Traits::default(), |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) })
}

struct FnAgent<F> {
    traits: Traits,
    run: F,
}

impl<F, Fut> Agent for FnAgent<F>
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), AgentError>> + Send + 'static,
{
    fn run(&self, turn: Turn) -> impl Future<Output = Result<(), AgentError>> + Send {
        (self.run)(turn)
    }

    fn traits(&self) -> Traits {
        self.traits.clone()
    }
}

/// An agent that does nothing by itself: each turn it is given comes out of [`Acts`], and the test plays it.
pub(crate) fn puppet(traits: Traits) -> (AgentSource, Acts) {
    let (starts, acts) = mpsc::unbounded_channel();
    let source = from_fn(traits, move |turn| {
        let (end, ended) = oneshot::channel();
        let _ = starts.send(Act { turn, end });
        async move {
            match ended.await {
                Ok(outcome) => outcome,
                // The test let go of its act: an agent that never comes back.
                Err(_) => std::future::pending().await,
            }
        }
    });
    (source, Acts(Arc::new(Mutex::new(acts))))
}

/// The turns a puppet is given, in order.
#[derive(Clone)]
pub(crate) struct Acts(Arc<Mutex<mpsc::UnboundedReceiver<Act>>>);

impl Acts {
    pub(crate) async fn next(&self) -> Act {
        soon(async { self.0.lock().await.recv().await }).await.expect("the agent is still there")
    }

    /// Whether a turn waits to be played.
    pub(crate) async fn is_empty(&self) -> bool {
        self.0.lock().await.is_empty()
    }
}

/// One turn, played by the test. Dropping it leaves the agent hanging.
pub(crate) struct Act {
    pub(crate) turn: Turn,
    end: oneshot::Sender<Result<(), AgentError>>,
}

impl Act {
    /// The agent's function returns.
    pub(crate) fn returns(self) {
        self.ends(Ok(()));
    }

    pub(crate) fn ends(self, outcome: Result<(), AgentError>) {
        // A run that was cut off no longer listens.
        let _ = self.end.send(outcome);
    }
}
