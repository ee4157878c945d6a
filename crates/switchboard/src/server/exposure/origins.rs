//! Where a server is reached: the names that it answers to, the origins whose pages may call it, and the path below which it is mounted.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::OriginalUri;
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

/// How strictly names and origins are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostRule {
    /// Any name may be ours: who calls is known by a credential, which no foreign page has.
    Any,
    /// Everybody may call, from other machines as well. A page elsewhere must not be able to have its readers' browsers do it:
    /// the name must be ours or a numeric address, which no foreign name can point to, and the page must come from here.
    Addresses,
    /// Only this machine is meant to call, or a proxy on it: the name must be ours.
    Loopback,
}

/// Which names this server answers to.
#[derive(Clone, Debug)]
pub(crate) struct HostCheck {
    rule: HostRule,
    /// The host of the public URL.
    own_host: Option<String>,
    /// The host that the certificate is for. No other server can have a page there.
    certified_host: Option<String>,
    /// Names that a setting allows.
    allowed_hosts: Vec<String>,
}

impl HostCheck {
    pub(crate) fn new(rule: HostRule, public_url: Option<&Uri>, certified_host: Option<String>) -> Self {
        let own_host = public_url.and_then(Uri::host).map(str::to_ascii_lowercase);
        Self { rule, own_host, certified_host, allowed_hosts: Vec::new() }
    }

    /// The same with further names that are ours.
    pub(crate) fn with_hosts(self, allowed_hosts: Vec<String>) -> Self {
        Self { allowed_hosts, ..self }
    }

    /// Whether a request that names this host may come in. `public` is the card, which any page may read.
    pub(crate) fn admits(
        &self,
        authority: Option<&str>,
        origin: Option<&HeaderValue>,
        cors: &Cors,
        public: bool,
    ) -> Result<(), &'static str> {
        match self.rule {
            HostRule::Any => return Ok(()),
            // A request without a name, as programs over HTTP/1.0 send it, comes from no browser.
            HostRule::Addresses if authority.is_none() && origin.is_none() => return Ok(()),
            HostRule::Addresses | HostRule::Loopback => {}
        }
        // A name and a password in front of the host have no place in a request; what looks like our host may be the name.
        let named = authority.filter(|authority| !authority.contains('@')).map(host_name);
        if !named.is_some_and(|host| self.is_ours(host) || self.rule == HostRule::Addresses && is_address(host)) {
            return Err(
                "this server answers only to loopback names, to its public URL and to allowed hosts (Host header)",
            );
        }
        let Some(origin) = origin.filter(|_| !public) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        if cors.allows(origin) {
            return Ok(());
        }
        let page = origin.split_once("://").map(|(_, rest)| rest);
        let is_ours = page.is_some_and(|page| match self.rule {
            HostRule::Any | HostRule::Loopback => self.is_ours(host_name(page)),
            // A page of another server on the reader's machine is a page elsewhere.
            HostRule::Addresses => {
                self.is_own_name(host_name(page)) || authority.is_some_and(|own| own.eq_ignore_ascii_case(page))
            }
        });
        if is_ours {
            return Ok(());
        }
        Err("pages of this origin may not call this server (Origin header)")
    }

    /// Whether a name is one that this server was given.
    fn is_own_name(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        let given = [&self.own_host, &self.certified_host].into_iter().flatten().chain(&self.allowed_hosts);
        given.map(|own| own.trim_matches(['[', ']'])).any(|own| own.eq_ignore_ascii_case(host))
    }

    fn is_ours(&self, host: &str) -> bool {
        // The two most common hosts are compared without parsing them.
        if host == "127.0.0.1" || host == "localhost" {
            return true;
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            || self.is_own_name(host)
    }
}

/// Whether a host is an address in numbers.
fn is_address(host: &str) -> bool {
    host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok()
}

/// The host without its port; an IPv6 address keeps its brackets.
fn host_name(authority: &str) -> &str {
    if authority.starts_with('[') {
        authority.split_inclusive(']').next().unwrap_or(authority)
    } else {
        authority.split(':').next().unwrap_or(authority)
    }
}

/// Origins whose pages may call the agents of this server.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    origins: Vec<String>,
    /// That tokens may stand in, beside `Authorization`.
    api_key_header: Option<HeaderName>,
}

const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, a2a-version, a2a-extensions, x-a2a-extensions, idempotency-key, last-event-id, \
     traceparent, tracestate, x-request-id, range, if-range, if-match, if-none-match",
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
        Self { origins: origins.into_iter().map(trim).collect(), api_key_header: None }
    }

    /// Lets pages send the header that tokens may stand in.
    pub(crate) fn with_api_key_header(self, api_key_header: Option<HeaderName>) -> Self {
        Self { api_key_header, ..self }
    }

    pub(crate) fn allows(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    /// Adds what a browser needs to see, if the request came from a page that may call. What is public is marked for
    /// every origin, because a cache may keep the answer to a program and give it to a page.
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
    pub(crate) fn preflight(&self) -> [(HeaderName, HeaderValue); 3] {
        let headers = self.api_key_header.as_ref().and_then(|name| {
            let all = [ALLOWED_HEADERS.as_bytes(), b", ", name.as_str().as_bytes()].concat();
            HeaderValue::from_bytes(&all).ok()
        });
        [
            (header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, headers.unwrap_or(ALLOWED_HEADERS)),
            (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
        ]
    }
}

const LOOPBACK_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The server's own address and the other names that it follows.
pub(crate) struct Origins {
    /// Scheme, host and port, and the path of a public URL; without a slash at its end.
    own: String,
    others: Vec<OtherName>,
}

struct OtherName {
    base: String,
    /// Host and port as requests name them: without the port, if it is the one that a URL need not name.
    authorities: Vec<String>,
}

impl Origins {
    /// One address for every request: that of the public URL.
    pub(crate) fn fixed(base: String) -> Self {
        Self { own: base, others: Vec::new() }
    }

    /// The address of a port, `http://127.0.0.1:8080`, and the same port under every other name of this machine.
    pub(crate) fn of_port(base: String, port: u16) -> Self {
        let (scheme, own_authority) = base.split_once("://").unwrap_or(("http", &base));
        let own_host = own_authority.rsplit_once(':').map_or(own_authority, |(host, _)| host);
        let is_default = port == if scheme == "https" { 443 } else { 80 };
        let other = |host: &str| {
            let mut authorities = vec![format!("{host}:{port}")];
            authorities.extend(is_default.then(|| host.to_owned()));
            OtherName { base: format!("{scheme}://{host}:{port}"), authorities }
        };
        let others =
            LOOPBACK_NAMES.into_iter().filter(|name| !name.eq_ignore_ascii_case(own_host)).map(other).collect();
        Self { others, own: base }
    }

    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// The addresses under the other names, in the order that [`Origins::asked`] counts them in.
    pub(crate) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(|other| other.base.as_str())
    }

    /// Which of the other names a request names; none if it names the own one, or one that is not followed.
    pub(crate) fn asked(&self, named: Option<&str>) -> Option<usize> {
        let named = named.filter(|_| !self.others.is_empty())?;
        let is_named = |authority: &String| authority.eq_ignore_ascii_case(named);
        self.others.iter().position(|other| other.authorities.iter().any(is_named))
    }
}

/// The host and port that a request names. HTTP/2 has them in the request target, HTTP/1 in a header.
pub(crate) fn named_authority<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let target = uri.authority().map(Authority::as_str);
    target.or_else(|| headers.get(header::HOST).and_then(|host| host.to_str().ok()))
}

/// A listener on all addresses is reached on this machine by its loopback address.
pub(crate) fn reachable(addr: SocketAddr) -> SocketAddr {
    if !addr.ip().is_unspecified() {
        return addr;
    }
    let loopback = if addr.is_ipv4() {
        std::net::IpAddr::from(std::net::Ipv4Addr::LOCALHOST)
    } else {
        std::net::IpAddr::from(std::net::Ipv6Addr::LOCALHOST)
    };
    SocketAddr::new(loopback, addr.port())
}

/// The path below which a server is reached: that of its public URL. A request comes with that path (directly, or through
/// a proxy that passes it on), or without it (through a proxy or an axum router that takes it off).
pub(crate) struct MountPath {
    /// The path of the public URL, without a slash at its end.
    public: String,
    /// Whether the log has been told that the mount and the public URL disagree.
    told: AtomicBool,
}

impl MountPath {
    pub(crate) fn new(public: String) -> Self {
        Self { public, told: AtomicBool::new(false) }
    }

    /// What a route may take off the path of this request. A router that nests the server has taken its own part off
    /// already and left the whole path in an extension; the rest must not be shortened a second time, since an agent may
    /// have a path of the same name (`/a2a`).
    pub(crate) fn base_of(&self, parts: &Parts) -> &str {
        let path = parts.uri.path();
        let removed_prefix = parts.extensions.get::<OriginalUri>().and_then(|whole| removed_prefix(whole.path(), path));
        let Some(prefix) = removed_prefix else { return &self.public };
        if prefix != self.public && !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                mounted_at = prefix,
                public_url_path = self.public,
                "the server is mounted at another path than its public URL has, so clients that go by its cards will not \
                 find it; give ServerBuilder::public_url the path of the mount"
            );
        }
        ""
    }
}

/// The part of the whole path that is missing from the path that is left, if any.
fn removed_prefix<'a>(whole: &'a str, left: &str) -> Option<&'a str> {
    let prefix = match whole.strip_suffix(left) {
        Some(prefix) => prefix,
        // A request for the mount itself: `/a2a` is left with `/`.
        None if left == "/" => whole,
        None => return None,
    };
    let prefix = prefix.trim_end_matches('/');
    (!prefix.is_empty()).then_some(prefix)
}

#[cfg(test)]
mod tests;
