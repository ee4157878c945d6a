//! Posting updates to webhooks. Each (task, config) has a cursor in the store, marked due by the commit itself; a loop
//! takes what is due, posts it in order, and moves the cursor. A receiver that fails is tried again later and never
//! holds up a run, a stream or another receiver.

mod backoff;
mod deliveries;
mod registering;
mod whole_task;

pub(crate) use deliveries::deliver_forever;
pub(crate) use registering::put_config;
