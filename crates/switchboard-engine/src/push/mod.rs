//! Posts updates to webhooks. Each pair of task and config has a cursor in the store, and a commit marks it due. The
//! loop in `dispatch` claims what is due and asks the queues in `crate::state::webhooks` which endpoint may be called now.
//! `deliver` posts each `payload` in order and advances the cursor. A receiver that fails is tried again later and never
//! delays a run, a stream or another receiver. `registering` adds a webhook to a task or replaces one, and `outbox` shows
//! deliveries to operators.

mod deliver;
mod dispatch;
mod outbox;
mod payload;
mod registering;

pub use outbox::{Changed, NextUpdate, OutboxAdmin, OutboxDetail, OutboxFilter, OutboxList};

pub use crate::state::webhooks::{EndpointHealth, WebhookEndpoint};

pub(crate) use dispatch::deliver_forever;
pub(crate) use payload::push_trace;
pub(crate) use registering::put_config;
