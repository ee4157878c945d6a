//! Tokens that are asked for when they are needed, and renewed before they expire or when an agent no longer takes them. Calls that
//! need one at the same time wait for one request.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_core::model::{AgentCard, OAuthFlowKind};

use super::super::http::{Http, Named};
use super::super::wall_clock;
use super::metadata::{Endpoints, place};
use super::token::Refusal;
use super::{OAuthClient, StoredToken, not_authorized};
use crate::call_error::CallError;

/// For how many authorization servers tokens are kept.
const SLOTS_MAX: usize = 100;

/// Where the tokens of an application come from. Clones share them.
#[derive(Clone)]
pub(in crate::client) struct TokenSource(Arc<Source>);

struct Source {
    client: OAuthClient,
    grant: Grant,
    /// By what a card says about where they are issued: a token for one server is not shown where another one is asked for.
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    /// The token that was issued last.
    newest: Mutex<Option<StoredToken>>,
}

enum Grant {
    /// The application asks in its own name.
    ClientCredentials,
    /// The user has given a token.
    Given,
}

/// An asynchronous lock, held while a token is asked for: that is how the calls beside it wait for the same one.
type Slot = tokio::sync::Mutex<Option<StoredToken>>;

impl PartialEq for TokenSource {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TokenSource {}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.client.fmt(f)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TokenSource {
    pub(in crate::client) fn client_credentials(client: OAuthClient) -> Self {
        let (slots, newest) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Source { client, grant: Grant::ClientCredentials, slots, newest }))
    }

    pub(in crate::client) fn given(client: OAuthClient, token: StoredToken) -> Self {
        let slot = Arc::new(Slot::new(Some(token.clone())));
        let slots = Mutex::new(HashMap::from([(String::new(), slot)]));
        Self(Arc::new(Source { client, grant: Grant::Given, slots, newest: Mutex::new(Some(token)) }))
    }

    pub(in crate::client) fn newest(&self) -> Option<StoredToken> {
        lock(&self.0.newest).clone()
    }

    /// A token for the agent of a card, which is not the one that the agent refused.
    pub(in crate::client) async fn token(
        &self,
        http: &Http,
        card: &AgentCard,
        named: &Named,
        refused: Option<&str>,
    ) -> Result<String, CallError> {
        let slot = self.slot(card);
        let mut kept = slot.lock().await;
        if let Some(token) = &*kept
            && !token.expires_by(wall_clock::now_s())
            && refused != Some(token.access_token.as_str())
        {
            return Ok(token.access_token.clone());
        }
        let token = self.renewed(http, card, named, kept.as_ref()).await?;
        let access_token = token.access_token.clone();
        *lock(&self.0.newest) = Some(token.clone());
        *kept = Some(token);
        Ok(access_token)
    }

    /// Whether a token that an agent refused can be replaced by another.
    pub(in crate::client) fn can_renew(&self) -> bool {
        match self.0.grant {
            Grant::ClientCredentials => true,
            Grant::Given => self.newest().is_some_and(|token| token.refresh_token.is_some()),
        }
    }

    fn slot(&self, card: &AgentCard) -> Arc<Slot> {
        let key = match self.0.grant {
            Grant::Given => String::new(),
            Grant::ClientCredentials => format!("{:?}", place(card, OAuthFlowKind::ClientCredentials)),
        };
        let mut slots = lock(&self.0.slots);
        if slots.len() >= SLOTS_MAX && !slots.contains_key(&key) {
            slots.clear();
        }
        slots.entry(key).or_default().clone()
    }

    async fn renewed(
        &self,
        http: &Http,
        card: &AgentCard,
        named: &Named,
        kept: Option<&StoredToken>,
    ) -> Result<StoredToken, CallError> {
        let client = &self.0.client;
        let refused = match kept {
            Some(StoredToken { refresh_token: Some(_), .. }) => match http.refreshed(client, kept, named).await? {
                Ok(token) => return Ok(token),
                Err(refusal) => Some(refusal),
            },
            _ => None,
        };
        match (&self.0.grant, refused) {
            (Grant::ClientCredentials, _) => {
                let kind = OAuthFlowKind::ClientCredentials;
                let endpoints = http.endpoints(card, kind, client, named).await?;
                http.for_itself(client, &endpoints, named).await
            }
            (Grant::Given, Some(refusal)) => Err(refusal.into_error()),
            (Grant::Given, None) => Err(not_authorized(
                "the token has expired, or the agent refused it, and it cannot be renewed; log in again",
            )),
        }
    }
}

impl Http {
    /// A token for the application itself.
    pub(super) async fn for_itself(
        &self,
        client: &OAuthClient,
        endpoints: &Endpoints,
        named: &Named,
    ) -> Result<StoredToken, CallError> {
        let url = endpoints.token_url()?;
        let scopes = endpoints.scopes.join(" ");
        let mut form = vec![("grant_type", "client_credentials")];
        if !scopes.is_empty() {
            form.push(("scope", &scopes));
        }
        let issued = self.issued(client, url, named, endpoints.secret_in_body, &endpoints.scopes, &form).await?;
        endpoints.kept(issued.map_err(Refusal::into_error)?)
    }

    pub(super) async fn refreshed(
        &self,
        client: &OAuthClient,
        kept: Option<&StoredToken>,
        named: &Named,
    ) -> Result<Result<StoredToken, Refusal>, CallError> {
        let Some(StoredToken { refresh_token: Some(refresh), token_endpoint, scopes, .. }) = kept else {
            return Ok(Err(Refusal::default()));
        };
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
        let issued = self.issued(client, token_endpoint, named, false, scopes, &form).await?;
        // A server that does not replace the refresh token leaves it out.
        Ok(issued
            .map(|token| StoredToken { refresh_token: token.refresh_token.or_else(|| Some(refresh.clone())), ..token }))
    }
}

impl Endpoints {
    pub(super) fn token_url(&self) -> Result<&str, CallError> {
        self.token.as_deref().ok_or_else(|| not_authorized("the card does not say where tokens are issued (tokenUrl)"))
    }

    /// A token that was issued, with the place where it is renewed.
    pub(super) fn kept(&self, token: StoredToken) -> Result<StoredToken, CallError> {
        let token_endpoint = self.refresh.clone().unwrap_or(token.token_endpoint);
        Ok(StoredToken { token_endpoint, ..token })
    }
}
