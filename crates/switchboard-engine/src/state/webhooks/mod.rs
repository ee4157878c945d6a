//! What is kept about webhooks. `endpoint_queues` decides which endpoint may be called now: `health` knows whether it is up, with
//! the pauses of `backoff`, and `owner_shares` whose turn it is. `claimed` is a delivery that waits there or is under way, and
//! `traces` the traces that deliveries belong to. The deliveries are made in `crate::push`.

mod backoff;
mod claimed;
mod endpoint_queues;
mod health;
mod owner_shares;
mod traces;

use std::sync::Mutex;

use crate::limits::Limits;

pub use endpoint_queues::{EndpointHealth, WebhookEndpoint};

pub(crate) use backoff::backoff_ms;
pub(crate) use claimed::ClaimedDelivery;
pub(crate) use endpoint_queues::{CallResult, Disposition, EndpointQueues};
pub(crate) use traces::WebhookTraces;

/// The queues that decide which endpoint may be called now; shared by the delivery loop and the operator's view.
pub(crate) type SharedEndpointQueues = Mutex<EndpointQueues<ClaimedDelivery>>;

pub(crate) fn endpoint_queues(limits: &Limits) -> SharedEndpointQueues {
    let rules = health::Rules {
        failures_max: limits.endpoint_failures_max.max(1),
        probe_ms_min: limits.endpoint_probe_ms_min,
        probe_ms_max: limits.endpoint_probe_ms_max,
    };
    let down_ms_max = i64::from(limits.endpoint_down_s_max) * 1_000;
    Mutex::new(EndpointQueues::new(limits.deliveries_max, rules, down_ms_max))
}
