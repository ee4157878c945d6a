//! Which web pages may talk to this server from a browser. Off unless said otherwise; only the public card may be read
//! from anywhere.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Origins whose pages may call the agents of this server.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    origins: Vec<String>,
}

const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, a2a-version, a2a-extensions, x-a2a-extensions, idempotency-key, last-event-id, \
     traceparent, x-request-id, range, if-range, if-match, if-none-match",
);
const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "a2a-extensions, x-a2a-extensions, a2a-output-modes, x-request-id, retry-after, etag, accept-ranges, content-range, \
     content-disposition",
);

impl Cors {
    /// Pages of these origins (`https://app.example`) may call.
    pub fn origins<T: Into<String>>(origins: impl IntoIterator<Item = T>) -> Self {
        let trim = |origin: T| origin.into().trim_end_matches('/').to_ascii_lowercase();
        Self { origins: origins.into_iter().map(trim).collect() }
    }

    pub(crate) fn allows(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    /// Adds what a browser needs to see, if the request came from a page that may call. What is public is marked for
    /// everybody: a cache may keep the answer to a program and hand it to a page.
    pub(crate) fn mark(&self, origin: Option<&HeaderValue>, public: bool, headers: &mut HeaderMap) {
        if public {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        } else if let Some(origin) = origin.filter(|origin| origin.to_str().is_ok_and(|origin| self.allows(origin))) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.append(header::VARY, HeaderValue::from_static("origin"));
        } else {
            return;
        }
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    }

    /// The headers of a preflight answer.
    pub(crate) fn preflight() -> [(HeaderName, HeaderValue); 3] {
        [
            (header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS),
            (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
        ]
    }
}
