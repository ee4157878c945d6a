//! The endpoint of a webhook: scheme, host and port of its URL, in one spelling. Health is tracked per endpoint.

use std::fmt;
use std::sync::Arc;

/// `https://hooks.example:443`. The path of a URL is often a secret and is not part of the endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookEndpoint(Arc<str>);

impl WebhookEndpoint {
    /// The endpoint of a URL. URLs of webhooks were checked when they were registered. For any other text, this is what
    /// precedes the first slash.
    #[must_use]
    pub fn of(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let (scheme, authority) = (scheme.to_ascii_lowercase(), authority.to_ascii_lowercase());
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.contains(']'));
        let port = match (has_port, scheme.as_str()) {
            (true, _) => "",
            (false, "http") => ":80",
            (false, _) => ":443",
        };
        Self(format!("{scheme}://{}{port}", authority.trim_end_matches(':')).into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WebhookEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::WebhookEndpoint;

    #[test]
    fn one_place_has_one_name_and_no_secret() {
        for (url, expected) in [
            ("https://hooks.example/in?key=secret", "https://hooks.example:443"),
            ("HTTPS://Hooks.Example:443/other", "https://hooks.example:443"),
            ("http://hooks.example", "http://hooks.example:80"),
            ("http://hooks.example:8080?x", "http://hooks.example:8080"),
            ("http://[::1]/in", "http://[::1]:80"),
            ("http://[::1]:9000/in", "http://[::1]:9000"),
            ("https://user:secret@hooks.example/", "https://hooks.example:443"),
            ("no url at all/secret", "https://no url at all:443"),
        ] {
            assert_eq!(WebhookEndpoint::of(url).as_str(), expected, "{url}");
        }
    }
}
