//! Whether this process should be given work, and if not, why. Only a write shows whether a store that failed works
//! again, so the store is probed at a fixed interval until a write succeeds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::ports::Store;
use crate::ports::store::StoreError;

/// Whether the process should be given work, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    Recovering,
    Draining,
    /// The store's last write failed. The reason contains nothing confidential.
    StoreFailed {
        reason: String,
    },
}

pub(crate) struct Health {
    pub(crate) recovering: AtomicBool,
    pub(crate) commit_failed: AtomicBool,
    reason: Mutex<String>,
    /// Wakes the loop that probes a failed store.
    failed: Notify,
}

impl Health {
    pub(crate) fn recovering() -> Self {
        Self {
            recovering: AtomicBool::new(true),
            commit_failed: AtomicBool::new(false),
            reason: Mutex::default(),
            failed: Notify::new(),
        }
    }

    pub(crate) fn readiness(&self, draining: bool) -> Readiness {
        if draining {
            Readiness::Draining
        } else if self.commit_failed.load(Ordering::Acquire) {
            Readiness::StoreFailed { reason: self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone() }
        } else if self.recovering.load(Ordering::Relaxed) {
            Readiness::Recovering
        } else {
            Readiness::Ready
        }
    }

    pub(crate) fn store_failed(&self, error: &StoreError) {
        let reason = match error {
            StoreError::Unavailable(reason) => reason.clone(),
            StoreError::Corrupt(_) => "what is stored is damaged".to_owned(),
            // The store answered. A damaged record affects only its own task, so the store as a whole is healthy.
            StoreError::Pruned | StoreError::Damaged(_) => return,
        };
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
        self.commit_failed.store(true, Ordering::Release);
        self.failed.notify_one();
    }

    /// Probes a failed store until it works again.
    pub(crate) async fn watch(&self, store: &dyn Store, pause: Duration) {
        loop {
            self.failed.notified().await;
            if !self.commit_failed.load(Ordering::Relaxed) {
                continue;
            }
            // A commit that succeeds meanwhile proves the same.
            while self.commit_failed.load(Ordering::Relaxed) {
                tokio::time::sleep(pause).await;
                match store.probe().await {
                    Ok(()) => self.commit_failed.store(false, Ordering::Relaxed),
                    Err(error) => self.store_failed(&error),
                }
            }
            tracing::info!("the store takes commits again");
        }
    }
}
