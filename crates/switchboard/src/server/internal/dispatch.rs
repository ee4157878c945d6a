//! Posts to the server's own routes: the engine's [`Dispatch`] port over the guarded HTTP client.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Request, header};
use serde_json::json;
use switchboard_core::call::BoxFuture;
use switchboard_core::model::TaskId;
use switchboard_engine::ports::{Clock, Dispatch};

use super::InternalRoute;
use super::token::InternalTokens;
use crate::outbound::{AddressPolicy, Client, RequestLimits, Trust};
use crate::server::serve_error::ServeError;

/// What is read of an answer.
const ANSWER_BYTES_MAX: u64 = 4 << 10;

/// Posts to this server.
pub(crate) struct SelfPoster {
    client: Client,
    tokens: InternalTokens,
    clock: Arc<dyn Clock>,
    /// The address of this server, without a slash at its end. A server learns it when it is bound or mounted.
    base: OnceLock<String>,
}

impl SelfPoster {
    /// `base` is where the posts go, if not to the server's own port.
    pub(crate) fn new(
        tokens: InternalTokens,
        clock: Arc<dyn Clock>,
        base: Option<String>,
        trust: Trust,
    ) -> Result<Self, ServeError> {
        // The address is the server's own, or one that its operator has configured, so it may be a private one.
        let client = Client::builder().policy(AddressPolicy::any()).trust(trust).build();
        let client = client.map_err(|error| ServeError::new(error.to_string()))?;
        let known = OnceLock::new();
        if let Some(base) = base {
            let _ = known.set(base.trim_end_matches('/').to_owned());
        }
        Ok(Self { client, tokens, clock, base: known })
    }

    /// Where the server is reached, unless another address was configured.
    pub(crate) fn served_at(&self, base: &str) {
        let _ = self.base.set(base.trim_end_matches('/').to_owned());
    }

    fn request(&self, route: InternalRoute, id: &str) -> Option<Request<Bytes>> {
        let row = route.row();
        let url = format!("{}/{}", self.base.get()?, row.path.join("/"));
        let token = self.tokens.make(id, self.clock.now().as_ms());
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        request.body(json!({row.row_field: id}).to_string().into()).ok()
    }

    fn post_about(&self, route: InternalRoute, id: &str) -> BoxFuture<'static, ()> {
        let about = route.row().row_field;
        let Some(request) = self.request(route, id) else {
            tracing::warn!(id, about, "nothing could be posted: the server does not know its own address");
            return Box::pin(std::future::ready(()));
        };
        let (client, id) = (self.client.clone(), id.to_owned());
        Box::pin(async move {
            let mut limits = RequestLimits::default();
            (limits.total, limits.body_bytes_max) = (Some(route.row().post_time_max), Some(ANSWER_BYTES_MAX));
            match client.send(request, &limits).await {
                Ok(answer) if answer.status().is_success() => {}
                Ok(answer) => {
                    tracing::warn!(id, about, status = answer.status().as_u16(), "the server refused its own post");
                }
                Err(error) => tracing::warn!(id, about, %error, "the server did not answer its own post"),
            }
        })
    }
}

impl Dispatch for SelfPoster {
    fn post(&self, task: &TaskId) -> BoxFuture<'static, ()> {
        self.post_about(InternalRoute::ProcessTask, task.as_str())
    }

    fn post_call(&self, call: &str) -> BoxFuture<'static, ()> {
        self.post_about(InternalRoute::ProcessContinuation, call)
    }
}
