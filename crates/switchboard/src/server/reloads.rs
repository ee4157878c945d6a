//! All files that a server reads again while it runs, whatever they are for: each is looked at from time to time, and all are read when
//! the operator asks for it (SIGHUP). The audit log has what came of it.

use std::sync::Arc;
use std::time::Duration;

use switchboard_engine::supervisor::{Kind, Supervisor};

use super::limits::ServerLimits;
use super::ports::Operations;
use crate::reloaded::{Reload, reload_and_log, reload_on_change};

/// What was read from files, and how often each is looked at. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reloads(Arc<[(Arc<dyn Reload>, Duration)]>);

impl Reloads {
    pub(crate) fn new(sources: Vec<Arc<dyn Reload>>, tls: Option<Arc<dyn Reload>>, limits: &ServerLimits) -> Self {
        let every = |seconds: u32| Duration::from_secs(u64::from(seconds.max(1)));
        let of_lists = sources.into_iter().map(|source| (source, every(limits.tokens_file_look_s)));
        let of_tls = tls.map(|source| (source, every(limits.tls_files_look_s)));
        Self(of_lists.chain(of_tls).filter(|(source, _)| source.files().is_some()).collect())
    }

    /// Has each file looked at while the server runs.
    pub(crate) fn keep_fresh(&self, supervisor: &Supervisor, operations: Option<&Arc<dyn Operations>>) {
        for (source, every) in self.0.iter() {
            if let (Some(files), Some(operations)) = (source.files(), operations) {
                // The files may outlive the server, and its store is closed when the server is dropped.
                let operations = Arc::downgrade(operations);
                files.record_by(move |entry| {
                    if let Some(operations) = operations.upgrade() {
                        operations.record_audit(entry);
                    }
                });
            }
            supervisor.spawn(Kind::Sweep, reload_on_change(source.clone(), *every));
        }
    }

    /// Reads all of them now, one after the other.
    pub(crate) async fn reload(&self) {
        for (source, _) in self.0.iter() {
            reload_and_log(&**source).await;
        }
    }
}
