//! Headers by which proxies tell the application behind them who calls. A client can write them as well, so what comes from outside
//! is dropped before an authenticator or an endpoint sees the request. An application that stands behind such a proxy reads
//! them in a layer around the server and hands on an `Identity` (`IdentityFromExtensions`).

use http::{HeaderMap, HeaderName};

/// The headers of oauth2-proxy, Authelia, Apache, nginx and Traefik, of the clouds' own logins, and what gateways use besides.
const IDENTITY_HEADERS: &[&str] = &[
    "cf-access-authenticated-user-email",
    "cf-access-jwt-assertion",
    "remote-email",
    "remote-groups",
    "remote-name",
    "remote-user",
    "x-a2a-principal",
    "x-a2a-subject",
    "x-a2a-tenant",
    "x-amzn-oidc-accesstoken",
    "x-amzn-oidc-data",
    "x-amzn-oidc-identity",
    "x-auth-request-access-token",
    "x-auth-request-email",
    "x-auth-request-groups",
    "x-auth-request-preferred-username",
    "x-auth-request-user",
    "x-authenticated-user",
    "x-authenticated-userid",
    "x-forwarded-access-token",
    "x-forwarded-client-cert",
    "x-forwarded-email",
    "x-forwarded-groups",
    "x-forwarded-preferred-username",
    "x-forwarded-user",
    "x-goog-authenticated-user-email",
    "x-goog-authenticated-user-id",
    "x-goog-iap-jwt-assertion",
    "x-ms-client-principal",
    "x-ms-client-principal-id",
    "x-ms-client-principal-name",
    "x-ms-token-aad-access-token",
    "x-ms-token-aad-id-token",
    "x-principal",
    "x-remote-group",
    "x-remote-groups",
    "x-remote-user",
    "x-ssl-client-cert",
    "x-ssl-client-dn",
    "x-ssl-client-s-dn",
    "x-ssl-client-verify",
    "x-subject",
    "x-tenant",
    "x-tenant-id",
    "x-user",
    "x-user-email",
    "x-user-id",
    "x-user-name",
    "x-user-roles",
    "x-userid",
    "x-username",
    "x-webauth-user",
];

/// Drops the identity headers of a request. Nearly every request has none, which `PresentHeaders` tells.
#[cold]
pub(crate) fn drop_identity_headers(headers: &mut HeaderMap) {
    let found: Vec<HeaderName> = headers.keys().filter(|name| is_identity_header(name.as_str())).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

pub(crate) fn is_identity_header(name: &str) -> bool {
    // Most headers are told apart from all of these by their first letters.
    if !matches!(name.as_bytes(), [b'x', b'-' | b'_', ..] | [b'c', b'f', ..] | [b'r', b'e', b'm', ..]) {
        return false;
    }
    // Proxies and CGI applications read an underscore as a dash.
    if !name.contains('_') {
        return IDENTITY_HEADERS.binary_search(&name).is_ok();
    }
    IDENTITY_HEADERS.binary_search(&name.replace('_', "-").as_str()).is_ok()
}

#[cfg(test)]
#[path = "identity_headers_tests.rs"]
mod tests;
