//! Traces and metrics for a collector of OpenTelemetry, over OTLP/HTTP with protobuf. `spans` is where spans are made and wait,
//! `read_metrics` reads what `/metrics` says, `encode` writes both with `protobuf`, and `exporter` sends them.
//!
//! A server without [`Otlp`] has none of this: it passes on the traces that come with calls and makes none.

mod encode;
mod exporter;
mod protobuf;
mod read_metrics;
mod spans;

use std::fmt;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

pub(crate) use exporter::{MetricsPage, Telemetry};

/// How often metrics are sent unless it is set.
const OTLP_INTERVAL_DEFAULT: Duration = Duration::from_secs(60);
/// Headers that a collector may want with each request.
const OTLP_HEADERS_MAX: usize = 32;

/// Where traces and metrics are sent, for [`ServerBuilder::otlp`](crate::ServerBuilder::otlp).
///
/// ```
/// use switchboard::{Otlp, Server};
///
/// let otlp = Otlp::new("http://127.0.0.1:4318")?.with_service_name("agents").with_sample_ratio(0.1)?;
/// let server = Server::builder().otlp(otlp);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone)]
pub struct Otlp {
    pub(crate) traces: Uri,
    pub(crate) metrics: Uri,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) service_name: String,
    pub(crate) sample_ratio: f64,
    pub(crate) interval: Duration,
}

// Headers may hold a password.
impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp").field("traces", &self.traces).finish_non_exhaustive()
    }
}

impl Otlp {
    /// A collector at this URL; `/v1/traces` and `/v1/metrics` are added to it.
    ///
    /// # Errors
    /// A sentence about what is wrong with the URL.
    pub fn new(endpoint: &str) -> Result<Self, String> {
        let base = endpoint.trim_end_matches('/');
        let place = |path: &str| -> Result<Uri, String> {
            let is_http = |url: &Uri| matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some();
            let url = format!("{base}{path}").parse().ok().filter(is_http);
            let url = url.ok_or("must begin with http:// or https:// and name a host")?;
            match url.query() {
                Some(_) => Err("must not have a query".to_owned()),
                None => Ok(url),
            }
        };
        Ok(Self {
            traces: place("/v1/traces")?,
            metrics: place("/v1/metrics")?,
            headers: Vec::new(),
            service_name: "switchboard".to_owned(),
            sample_ratio: 1.0,
            interval: OTLP_INTERVAL_DEFAULT,
        })
    }

    /// Headers for each request, such as `authorization=Bearer%20abc,x-tenant=1`: pairs separated by commas, the values
    /// percent-encoded.
    ///
    /// # Errors
    /// A sentence that names the header, never its value.
    pub fn with_headers(mut self, pairs: &str) -> Result<Self, String> {
        for pair in pairs.split([',', '\n']).map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or("a header has no =; write NAME=VALUE")?;
            let name = name.trim();
            let value = percent_encoding::percent_decode_str(value.trim()).collect::<Vec<u8>>();
            let unfit = |_| format!("the header {name:?} cannot be sent");
            let parsed = HeaderName::try_from(name).map_err(|_| format!("{name:?} is no name of a header"))?;
            let mut value = HeaderValue::from_bytes(&value).map_err(unfit)?;
            value.set_sensitive(true);
            if self.headers.len() == OTLP_HEADERS_MAX {
                return Err(format!("there are more than {OTLP_HEADERS_MAX} headers"));
            }
            self.headers.push((parsed, value));
        }
        Ok(self)
    }

    /// What the collector calls this server; `switchboard` unless it is set.
    #[must_use]
    pub fn with_service_name(mut self, name: impl Into<String>) -> Self {
        self.service_name = name.into();
        self
    }

    /// Which part of the traces that begin here is recorded, from 0 to 1; 1 unless it is set. A call that comes in a trace is
    /// recorded if its caller records it.
    ///
    /// # Errors
    /// When it is not between 0 and 1.
    pub fn with_sample_ratio(mut self, ratio: f64) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&ratio) {
            return Err(format!("expected 0 to 1, got {ratio}"));
        }
        self.sample_ratio = ratio;
        Ok(self)
    }

    /// How often metrics are sent; every minute unless it is set, and at most once a second.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(Duration::from_secs(1));
        self
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
