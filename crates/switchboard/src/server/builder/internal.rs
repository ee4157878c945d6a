//! Settings of the routes for requests that the server posts to itself, and of the door for programs that agents start.

use super::ServerBuilder;
use crate::server::internal::door::CallDoor;

impl ServerBuilder {
    /// The secret under which requests are signed that the server posts to itself (`A2A_SECRET`). Every process behind the same
    /// address needs the same one.
    #[must_use]
    pub fn internal_secret(mut self, secret: impl Into<String>) -> Self {
        self.self_fire.secret = Some(secret.into());
        self
    }

    /// Starts the tasks of asynchronous sends by requests that the server posts to itself, at
    /// `/_agent-native/a2a/_process-task`, for hosts that give each request its own time to work and may freeze a process that has
    /// none. Such a send only enqueues and waits at most 250 ms for its post; the run belongs to the request that arrives. If none
    /// does, the server posts again after 10 seconds and then at growing intervals, and a task that was not started in 3
    /// minutes (or [`Limits::queued_s_max`](crate::Limits)) fails. In [production](Self::production) it needs
    /// [`internal_secret`](Self::internal_secret).
    #[must_use]
    pub fn self_fire(mut self, on: bool) -> Self {
        self.self_fire.is_on = on;
        self
    }

    /// Where these posts go, if not to the port of this process: the address of a load balancer or of a platform.
    #[must_use]
    pub fn self_fire_url(mut self, url: impl Into<String>) -> Self {
        self.self_fire.url = Some(url.into());
        self
    }

    /// Serves this door, for agents that start programs. A request without a token of a run at work is refused there.
    #[must_use]
    pub fn call_door(mut self, door: &CallDoor) -> Self {
        self.call_door = Some(door.clone());
        self
    }
}
