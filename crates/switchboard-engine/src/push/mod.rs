//! Posting updates to webhooks. Each (task, config) has a cursor in the store, marked due by the commit itself. A loop
//! (`dispatch`) takes what is due, `endpoint_queues` says which endpoint may be called now (`health` whether it is up), `deliver`
//! posts each `payload` in order, and the cursor moves. A receiver that fails is tried again later and never holds up a
//! run, a stream or another receiver. `outbox` is what an operator sees of it.

mod backoff;
mod deliver;
mod dispatch;
mod endpoint;
mod endpoint_queues;
mod health;
mod outbox;
mod payload;
mod registering;

use std::sync::Mutex;

use crate::limits::Limits;

pub use endpoint::WebhookEndpoint;
pub use endpoint_queues::EndpointHealth;
pub use outbox::{Changed, NextUpdate, OutboxAdmin, OutboxDetail, OutboxFilter, OutboxList};

pub(crate) use dispatch::deliver_forever;
pub(crate) use registering::put_config;

/// Who may be called now; shared by the loop and those who look at it.
pub(crate) type SharedEndpointQueues = Mutex<endpoint_queues::EndpointQueues<deliver::ClaimedDelivery>>;

pub(crate) fn endpoint_queues(limits: &Limits) -> SharedEndpointQueues {
    let rules = health::Rules {
        failures_max: limits.endpoint_failures_max.max(1),
        probe_ms_min: limits.endpoint_probe_ms_min,
        probe_ms_max: limits.endpoint_probe_ms_max,
    };
    let down_ms_max = i64::from(limits.endpoint_down_s_max) * 1_000;
    Mutex::new(endpoint_queues::EndpointQueues::new(limits.deliveries_max, rules, down_ms_max))
}
