//! Follows tasks as they change. A subscription is a cursor into the log; `waiting` waits until there is an answer.
//! Followers have no channels of their own: they share a tail of the task's newest updates (`crate::state::tail`), and a
//! follower that is further behind reads the store. `catching_up` reads for all of them what other processes commit.

mod catching_up;
mod resume;
mod subscription;
mod waiting;

pub(crate) use catching_up::{Listener, catch_up_forever};
pub(crate) use resume::{follow, replay, resume, resume_turn, shorten};
pub(crate) use subscription::{Finished, Following, Subscription, frames, snapshot};
pub(crate) use waiting::{Until, drive_until_settled, drive_until_written, wait_until};
