//! The connections of a store, by what they are for, and who decides the time.

use switchboard_engine::ports::store::StoreError;
use tokio_postgres::Row;

use super::connect::{Connector, Params, Pool, Slot};
use super::options::TimeSource;

pub(super) struct Database {
    pub(super) connector: Connector,
    /// The same for the writers, whose connections plan each statement once.
    pub(super) writers: Connector,
    /// For reads of callers.
    pub(super) readers: Pool,
    /// For leases and deliveries, which must not wait behind reads.
    pub(super) service: Pool,
    /// For work that may take long.
    pub(super) upkeep: Slot,
    pub(super) time: TimeSource,
}

impl Database {
    /// The time, if a test decides it.
    pub(super) fn now(&self) -> Option<i64> {
        match &self.time {
            TimeSource::Database => None,
            TimeSource::Given(clock) => Some(clock.now().as_ms()),
        }
    }

    pub(super) async fn read(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        Ok(self.readers.query(&self.connector, sql, params).await?)
    }

    pub(super) async fn serve(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        Ok(self.service.query(&self.connector, sql, params).await?)
    }

    pub(super) async fn tend(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        let connection = self.upkeep.get(&self.connector).await?;
        let result = connection.query(sql, params).await;
        if result.is_err() {
            self.upkeep.discard(&connection).await;
        }
        Ok(result?)
    }
}
