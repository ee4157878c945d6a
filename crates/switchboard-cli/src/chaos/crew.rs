//! Work that goes on side by side, and ends when its owner lets go of it.

use std::future::Future;

use tokio::task::JoinSet;

pub(super) struct Crew(JoinSet<()>);

impl Crew {
    pub(super) fn new() -> Self {
        Self(JoinSet::new())
    }

    #[expect(clippy::disallowed_methods, reason = "the crew owns what it starts, and ends it when it is dropped")]
    pub(super) fn add(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(work);
    }

    /// Returns when one of them is done; never, if there is none.
    pub(super) async fn someone_leaves(&mut self) {
        if self.0.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when all are done.
    ///
    /// # Panics
    /// When one of them has.
    pub(super) async fn all_leave(&mut self) {
        while let Some(left) = self.0.join_next().await {
            if let Err(error) = left
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }
}
