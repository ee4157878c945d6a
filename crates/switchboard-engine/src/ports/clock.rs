//! What time it is. The store decides leases by its own clock; this one stamps events.

use switchboard_core::model::Timestamp;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}
