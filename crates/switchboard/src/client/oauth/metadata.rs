//! Where an authorization server is: from the security schemes of a card, and from the metadata that they point to (OpenID Connect
//! Discovery, RFC 8414).

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, Request, StatusCode, Uri};
use serde::Deserialize;
use switchboard_core::dialect::json::excerpt;
use switchboard_core::model::{AgentCard, OAuthFlow, OAuthFlowKind, SecurityScheme};

use super::super::http::{Http, Named, Origin, read};
use super::{OAuthClient, not_authorized};
use crate::call_error::CallError;
use crate::outbound::{RequestLimits, check_url};

/// The size of the metadata of an authorization server.
const METADATA_BYTES_MAX: u64 = 256 * 1_024;

const OPENID_PATH: &str = "/.well-known/openid-configuration";
const OAUTH_PATH: &str = "/.well-known/oauth-authorization-server";

/// Where tokens are issued, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Endpoints {
    pub(super) issuer: Option<String>,
    pub(super) authorization: Option<String>,
    pub(super) device_authorization: Option<String>,
    pub(super) token: Option<String>,
    /// Where tokens are renewed, if that is elsewhere.
    pub(super) refresh: Option<String>,
    /// Whether the server takes the secret among the parameters and in no other form.
    pub(super) secret_in_body: bool,
    /// What the card asks for.
    pub(super) scopes: Vec<String>,
}

/// Where a card says that tokens for one kind of login are to be had.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Known(Endpoints),
    /// In the metadata at this URL.
    Described {
        url: String,
        scopes: Vec<String>,
    },
}

/// The place that a card names for a kind of login; none if it names none. Schemes that the card requires come first.
pub(super) fn place(card: &AgentCard, kind: OAuthFlowKind) -> Option<Place> {
    let required = |name: &str| {
        let all = card.security_requirements.iter().flat_map(|requirement| &requirement.schemes);
        all.into_iter().find(|(known, _)| known == name).map(|(_, scopes)| scopes)
    };
    let mut schemes: Vec<_> = card.security_schemes.iter().collect();
    // Stable: among equals the order of the card decides.
    schemes.sort_by_key(|(name, _)| required(name).is_none());
    let scopes = |name: &str| required(name).cloned().unwrap_or_default();
    let text = |url: &Option<String>| url.clone().filter(|url| !url.is_empty());
    let known = schemes.iter().find_map(|(name, scheme)| match scheme {
        SecurityScheme::OAuth2 { flow, .. } if flow.kind == kind => {
            let OAuthFlow { authorization_url, device_authorization_url, token_url, refresh_url, .. } = flow;
            Some(Place::Known(Endpoints {
                authorization: text(authorization_url),
                device_authorization: text(device_authorization_url),
                token: text(token_url),
                refresh: text(refresh_url),
                scopes: scopes(name),
                ..Endpoints::default()
            }))
        }
        _ => None,
    });
    known.or_else(|| {
        schemes.iter().find_map(|(name, scheme)| {
            let url = match scheme {
                SecurityScheme::OpenIdConnect { url, .. } => Some(url.clone()),
                SecurityScheme::OAuth2 { metadata_url, .. } => text(metadata_url),
                _ => None,
            };
            url.map(|url| Place::Described { url, scopes: scopes(name) })
        })
    })
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// Reads metadata that was found at a URL. Its issuer must be the one that the URL is of: otherwise the metadata of one server could
/// be shown in the name of another (OpenID Connect Discovery, 4.3; RFC 8414, 3.3).
fn read_metadata(url: &str, json: &[u8]) -> Result<Endpoints, String> {
    let metadata: Metadata = serde_json::from_slice(json).map_err(|error| format!("it cannot be read: {error}"))?;
    let issuer = metadata.issuer.trim_end_matches('/');
    let is_issuer = match (url.strip_suffix(OPENID_PATH), url.split_once(OAUTH_PATH)) {
        (Some(expected), _) => issuer == expected,
        (None, Some((origin, path))) => issuer == format!("{origin}{}", path.trim_end_matches('/')),
        (None, None) => {
            let origin = |url: &str| url.parse::<Uri>().ok().as_ref().and_then(Origin::of);
            origin(issuer).is_some() && origin(issuer) == origin(url)
        }
    };
    if !is_issuer {
        return Err(format!("its issuer is {:?}, which is not the one of this URL", excerpt(issuer, 128)));
    }
    let methods = metadata.token_endpoint_auth_methods_supported.unwrap_or_default();
    let has = |name: &str| methods.iter().any(|method| method == name);
    Ok(Endpoints {
        issuer: Some(metadata.issuer),
        authorization: metadata.authorization_endpoint,
        device_authorization: metadata.device_authorization_endpoint,
        token: metadata.token_endpoint,
        refresh: None,
        secret_in_body: has("client_secret_post") && !has("client_secret_basic"),
        scopes: Vec::new(),
    })
}

impl Http {
    /// Where tokens for this agent are issued.
    pub(super) async fn endpoints(
        &self,
        card: &AgentCard,
        kind: OAuthFlowKind,
        client: &OAuthClient,
        named: &Named,
    ) -> Result<Endpoints, CallError> {
        let mut endpoints = match place(card, kind) {
            Some(Place::Known(endpoints)) => endpoints,
            Some(Place::Described { url, scopes }) => {
                Endpoints { scopes, ..self.described_endpoints(&url, named).await? }
            }
            None if client.token_url.is_some() => Endpoints::default(),
            None => {
                let why = format!("the card of {:?} has no scheme of OAuth 2.0 for this login", card.name);
                return Err(not_authorized(why));
            }
        };
        if let Some(own) = &client.token_url {
            // Refresh tokens go where the user says that tokens are issued, and nowhere else.
            (endpoints.token, endpoints.refresh) = (Some(own.clone()), None);
        }
        if let Some(own) = &client.scopes {
            endpoints.scopes.clone_from(own);
        }
        Ok(endpoints)
    }

    async fn described_endpoints(&self, url: &str, named: &Named) -> Result<Endpoints, CallError> {
        let unusable =
            |why: &str| not_authorized(format!("the metadata of the authorization server at {url:?}: {why}"));
        let uri = check_url(url).map_err(|why| unusable(&why))?;
        check_transport(&uri, named).map_err(|why| unusable(&why))?;
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = uri;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let mut limits = RequestLimits::default();
        limits.total = Some(self.limits.call);
        limits.body_bytes_max = Some(METADATA_BYTES_MAX);
        let answer = self.send(|| Ok(request.clone()), &limits, named, true).await?;
        if answer.status() != StatusCode::OK {
            return Err(unusable(&format!("HTTP {}", answer.status().as_u16())));
        }
        let json = read(answer.into_body()).await?;
        read_metadata(url, &json).map_err(|why| unusable(&why))
    }
}

/// Secrets are sent over TLS, or to an origin that the user named.
pub(super) fn check_transport(uri: &Uri, named: &Named) -> Result<(), String> {
    if uri.scheme_str() == Some("https") || named.covers(uri) {
        return Ok(());
    }
    Err("it is not at an https URL, and the user has not named its origin".to_owned())
}

#[cfg(test)]
mod tests {
    use switchboard_core::dialect::Dialect;
    use switchboard_core::model::OAuthFlowKind;

    use super::{Endpoints, Place, place, read_metadata};

    fn at(card: &str, kind: OAuthFlowKind) -> Option<Place> {
        place(&Dialect::V1_0.read_card(card.as_bytes(), &Default::default()).unwrap(), kind)
    }

    #[test]
    fn both_forms_of_a_card_name_the_place() {
        let endpoints = Endpoints {
            token: Some("https://l/t".to_owned()),
            refresh: Some("https://l/r".to_owned()),
            scopes: vec!["read".to_owned()],
            ..Endpoints::default()
        };
        let of_1_0 = r#"{"name":"a","securitySchemes":{"x":{"httpAuthSecurityScheme":{"scheme":"Bearer"}},"o":{"oauth2SecurityScheme":{"flows":
            {"clientCredentials":{"tokenUrl":"https://l/t","refreshUrl":"https://l/r","scopes":{"read":""}}}}}},
            "securityRequirements":[{"schemes":{"o":{"list":["read"]}}}]}"#;
        let of_0_3 = r#"{"url":"http://x","securitySchemes":{"o":{"type":"oauth2","flows":{"authorizationCode":{"authorizationUrl":"https://l/a",
            "tokenUrl":"https://l/t"},"clientCredentials":{"tokenUrl":"https://l/t","refreshUrl":"https://l/r"}}}},
            "security":[{"o":["read"],"o-clientCredentials":["read"]}]}"#;
        for card in [of_1_0, of_0_3] {
            assert_eq!(at(card, OAuthFlowKind::ClientCredentials), Some(Place::Known(endpoints.clone())), "{card}");
            assert_eq!(at(card, OAuthFlowKind::DeviceCode), None);
        }
        let Some(Place::Known(code)) = at(of_0_3, OAuthFlowKind::AuthorizationCode) else { panic!() };
        assert_eq!(code.authorization.as_deref(), Some("https://l/a"));
    }

    #[test]
    fn what_a_card_requires_comes_first_and_metadata_serve_every_login() {
        let card = r#"{"url":"http://x","securitySchemes":{"one":{"type":"openIdConnect","openIdConnectUrl":"https://one"},
            "two":{"type":"openIdConnect","openIdConnectUrl":"https://two"}},"security":[{"two":["s"]}]}"#;
        let two = Place::Described { url: "https://two".to_owned(), scopes: vec!["s".to_owned()] };
        assert_eq!(at(card, OAuthFlowKind::DeviceCode), Some(two));
        assert_eq!(at(r#"{"name":"a"}"#, OAuthFlowKind::DeviceCode), None);
    }

    #[test]
    fn metadata_must_be_of_their_own_issuer() {
        let metadata = |issuer: &str| format!(r#"{{"issuer":"{issuer}","token_endpoint":"https://t"}}"#);
        for (url, issuer, expected) in [
            ("https://l/.well-known/openid-configuration", "https://l", true),
            ("https://l/a/.well-known/openid-configuration", "https://l/a/", true),
            ("https://l/a/.well-known/openid-configuration", "https://l", false),
            ("https://l/.well-known/openid-configuration", "https://evil", false),
            ("https://l/.well-known/oauth-authorization-server/a", "https://l/a", true),
            ("https://l/.well-known/oauth-authorization-server", "https://l", true),
            ("https://l/.well-known/oauth-authorization-server/a", "https://l", false),
            ("https://l/metadata.json", "https://l/x", true),
            ("https://l/metadata.json", "https://evil/x", false),
            ("https://l/metadata.json", "nonsense", false),
        ] {
            let read = read_metadata(url, metadata(issuer).as_bytes());
            assert_eq!(read.is_ok(), expected, "{url} {issuer} {read:?}");
        }
        assert!(read_metadata("https://l/x", b"{}").is_err());
    }
}
