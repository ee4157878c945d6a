//! Posts updates to webhooks. Each pair of task and config has a cursor in the store, and a commit marks it due. The
//! loop in `dispatch` claims what is due, `endpoint_queues` decides which endpoint may be called now (`health` knows
//! whether it is up, and `owner_shares` whose turn it is), and `deliver` posts each `payload` in order and advances the cursor. A receiver that fails is
//! tried again later and never delays a run, a stream or another receiver. `outbox` shows deliveries to operators.

mod backoff;
mod claimed;
mod deliver;
mod dispatch;
mod endpoint_queues;
mod health;
mod outbox;
mod owner_shares;
mod payload;
mod registering;
mod traces;

use std::sync::Mutex;

use crate::limits::Limits;

pub use endpoint_queues::{EndpointHealth, WebhookEndpoint};
pub use outbox::{Changed, NextUpdate, OutboxAdmin, OutboxDetail, OutboxFilter, OutboxList};

pub(crate) use dispatch::deliver_forever;
pub(crate) use payload::push_trace;
pub(crate) use registering::put_config;
pub(crate) use traces::WebhookTraces;

/// The queues that decide which endpoint may be called now; shared by the delivery loop and the operator's view.
pub(crate) type SharedEndpointQueues = Mutex<endpoint_queues::EndpointQueues<claimed::ClaimedDelivery>>;

pub(crate) fn endpoint_queues(limits: &Limits) -> SharedEndpointQueues {
    let rules = health::Rules {
        failures_max: limits.endpoint_failures_max.max(1),
        probe_ms_min: limits.endpoint_probe_ms_min,
        probe_ms_max: limits.endpoint_probe_ms_max,
    };
    let down_ms_max = i64::from(limits.endpoint_down_s_max) * 1_000;
    Mutex::new(endpoint_queues::EndpointQueues::new(limits.deliveries_max, rules, down_ms_max))
}
