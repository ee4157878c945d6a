//! Receives the webhooks of the agent under test as they come, and keeps them for the checks. Each check registers a URL of its own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::client::listen::serve;

/// What is kept of all webhooks of a run: how many, and how large one may be. Further ones are refused.
const DELIVERIES_MAX: usize = 4_096;
const DELIVERY_BYTES_MAX: usize = 1 << 20;

/// One webhook as it came.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Delivery {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// None if the body is not JSON.
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// Where webhooks arrive.
pub(crate) struct Receiver {
    /// Without a final slash.
    url: String,
    kept: Arc<Mutex<Vec<Delivery>>>,
    arrived: watch::Receiver<usize>,
}

impl Receiver {
    /// Listens. What is returned beside the receiver must be polled for webhooks to arrive.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub(crate) async fn listen(
        at: SocketAddr,
        public_url: Option<&str>,
    ) -> std::io::Result<(Self, impl Future<Output = Infallible> + use<>)> {
        let listener = TcpListener::bind(at).await?;
        let own = format!("http://{}", listener.local_addr()?);
        let url = public_url.map_or(own, |url| url.trim_end_matches('/').to_owned());
        let kept = Arc::<Mutex<Vec<Delivery>>>::default();
        let (count, arrived) = watch::channel(0);
        let (sink, count) = (kept.clone(), Arc::new(count));
        let receiving = service_fn(move |request: Request<Incoming>| {
            let (sink, count) = (sink.clone(), count.clone());
            async move { Ok::<_, Infallible>(receive(request, &sink, &count).await) }
        });
        Ok((Self { url, kept, arrived }, serve(listener, receiving)))
    }

    /// The URL of a webhook of this name.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }

    /// What has come for the webhook of this name so far.
    pub(crate) fn delivered(&self, name: &str) -> Vec<Delivery> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // A proxy before the receiver may put a path before the name.
        kept.iter().filter(|delivery| delivery.path.ends_with(&format!("/{name}"))).cloned().collect()
    }

    /// The same once there is at least one, or the time is over.
    pub(crate) async fn first_delivered(&self, name: &str, limit: Duration) -> Vec<Delivery> {
        let mut arrived = self.arrived.clone();
        let waiting = async { while self.delivered(name).is_empty() && arrived.changed().await.is_ok() {} };
        let _ = timeout(limit, waiting).await;
        self.delivered(name)
    }
}

async fn receive(
    request: Request<Incoming>,
    kept: &Mutex<Vec<Delivery>>,
    count: &watch::Sender<usize>,
) -> Response<Empty<Bytes>> {
    let answer = |status| {
        let mut answer = Response::new(Empty::new());
        *answer.status_mut() = status;
        answer
    };
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, DELIVERY_BYTES_MAX).collect().await else {
        return answer(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let delivery = Delivery { path: head.uri.path().to_owned(), headers: head.headers, body: body.to_bytes() };
    {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= DELIVERIES_MAX {
            return answer(StatusCode::SERVICE_UNAVAILABLE);
        }
        kept.push(delivery);
    }
    count.send_modify(|count| *count += 1);
    answer(StatusCode::NO_CONTENT)
}
