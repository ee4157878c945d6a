//! How the outbox is reached: over HTTP, or in the data folder.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri, header};
use serde_json::Value;
use switchboard::OfflineOutbox;
use switchboard::outbound::{AddressPolicy, Client, Error, ErrorKind, RequestLimits, TlsFault, Trust};

use crate::cli::OutboxTarget;
use crate::config::{DATABASE_NAME, Environment, OPERATOR_KEY_NAME, Storage, is_local_url, local_url, read_layers};
use crate::failure::Failure;
use crate::operator_key;
use crate::process::os_user;

/// An answer that takes longer, or is larger, is none.
const PATIENCE: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: u64 = 4 << 20;

pub(super) enum Reach {
    Server(Box<Server>),
    Folder(Box<OfflineOutbox>),
}

pub(super) struct Server {
    url: String,
    token: Option<String>,
    client: Client,
    limits: RequestLimits,
}

/// Why there is no answer.
enum Trouble {
    /// No server listens there.
    Unreachable(String),
    Other(String),
}

impl Reach {
    /// The folder if it is named, the server if it is named; else the server of the configuration, and if none answers
    /// at its address, its folder.
    pub(super) async fn find(place: &OutboxTarget, environment: &Environment, folder: &Path) -> Result<Self, Failure> {
        let layers = read_layers(&place.settings(), place.config.as_deref(), environment, folder);
        let (settings, tls) = layers.server()?;
        let database = match settings.storage() {
            Storage::Sqlite { folder: data, .. } => Some(folder.join(data).join(DATABASE_NAME)),
            Storage::Memory | Storage::Postgres { .. } => None,
        };
        if place.names_folder() {
            let database = database.ok_or_else(|| Failure::Usage("there is no database in memory".to_owned()))?;
            return Self::open(&database);
        }
        let url = match &place.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => local_url(*settings.listen, tls.cert.is_some()),
        };
        let trust = match (&place.ca_cert, &tls.cert.value) {
            (Some(file), _) => Trust::Authorities(folder.join(file)),
            (None, Some(own)) if place.url.is_none() => Trust::Certificate(folder.join(own)),
            (None, _) => Trust::PublicAuthorities,
        };
        let token = match (place.token(environment, folder)?, &database) {
            // A server on this machine may be one without tokens, whose key is beside its database.
            (None, Some(database)) if place.url.as_deref().is_none_or(is_local_url) => {
                operator_key::read(&database.with_file_name(OPERATOR_KEY_NAME))
            }
            (token, _) => token,
        };
        let server = Server::new(url, token, trust)?;
        match server.ask(Method::GET, "/healthz", None).await {
            Err(Trouble::Unreachable(why)) => {
                match database.filter(|database| place.url.is_none() && database.exists()) {
                    Some(database) => Self::open(&database),
                    None => Err(Failure::Runtime(why)),
                }
            }
            Err(Trouble::Other(why)) => Err(Failure::Runtime(why)),
            Ok(_) => Ok(Self::Server(Box::new(server))),
        }
    }

    fn open(database: &Path) -> Result<Self, Failure> {
        if !database.exists() {
            return Err(Failure::Runtime(format!("there is no database at {}", database.display())));
        }
        Ok(Self::Folder(Box::new(OfflineOutbox::open(database).map_err(Failure::runtime)?.acting_as(os_user()))))
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::GET, path, None).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.ask(Method::POST, path, Some(body)).await
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let (status, body) = match self {
            Self::Server(server) => server.ask(method, path, body).await.map_err(|trouble| match trouble {
                Trouble::Unreachable(why) | Trouble::Other(why) => Failure::Runtime(why),
            })?,
            Self::Folder(outbox) => {
                let answer = outbox.answer(request(method, path, body, None)?).await;
                (answer.status().as_u16(), answer.into_body())
            }
        };
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        if (200..300).contains(&status) && !value.is_null() {
            return Ok(value);
        }
        let plain = body.starts_with(b"this port speaks TLS").then_some("this port speaks TLS; use https://");
        let why = value["error"]["message"].as_str().or(plain).unwrap_or("there is no outbox at this address");
        Err(Failure::Runtime(format!("refused with status {status}: {why}")))
    }
}

/// The status and the body of a page of a server that asks for no token.
///
/// # Errors
/// When there is no answer.
pub(crate) async fn fetch(url: &str, path: &str, trust: Trust) -> Result<(u16, Bytes), Failure> {
    let server = Server::new(url.to_owned(), None, trust)?;
    server.ask(Method::GET, path, None).await.map_err(|trouble| match trouble {
        Trouble::Unreachable(why) | Trouble::Other(why) => Failure::Runtime(why),
    })
}

fn request(method: Method, url: &str, body: Option<&Value>, token: Option<&str>) -> Result<Request<Bytes>, Failure> {
    let mut request = Request::builder().method(method).uri(url);
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
    // The token is not quoted: it may be what is wrong.
    request.body(body).map_err(|_| Failure::Usage("the URL or the token cannot be sent over HTTP".to_owned()))
}

impl Server {
    fn new(url: String, token: Option<String>, trust: Trust) -> Result<Self, Failure> {
        let parsed: Option<Uri> = url.parse().ok();
        if !parsed.is_some_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()) {
            return Err(Failure::Usage(format!("--url: expected http://HOST:PORT or https://HOST, got {url:?}")));
        }
        let client = Client::builder().policy(AddressPolicy::any()).trust(trust).build();
        let client = client.map_err(|error| Failure::Usage(error.to_string()))?;
        let mut limits = RequestLimits::default();
        (limits.total, limits.body_bytes_max) = (Some(PATIENCE), Some(ANSWER_BYTES_MAX));
        Ok(Self { url, token, client, limits })
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(u16, Bytes), Trouble> {
        let request = request(method, &format!("{}{path}", self.url), body, self.token.as_deref());
        let request = request.map_err(|failure| Trouble::Other(failure.to_string()))?;
        let unanswered = |error: Error| match error.kind() {
            ErrorKind::Connect => Trouble::Unreachable(format!("no answer from {}: {error}", self.url)),
            ErrorKind::TimedOut => Trouble::Other(error.to_string()),
            _ => Trouble::Other(format!("no answer from {}: {}", self.url, why(&error))),
        };
        let answer = self.client.send(request, &self.limits).await.map_err(unanswered)?;
        let status = answer.status().as_u16();
        let body = answer.into_body().bytes().await.map_err(|error| Trouble::Other(error.to_string()))?;
        Ok((status, body))
    }
}

/// What went wrong, and what to do about it where an option or the URL is the remedy.
fn why(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Tls(TlsFault::NotPinned) => "it shows another certificate than that of the configuration".to_owned(),
        ErrorKind::Tls(TlsFault::UnknownIssuer) => {
            "no authority that is trusted has issued its certificate; --ca-cert FILE names others".to_owned()
        }
        ErrorKind::Tls(TlsFault::NotTls) => "it does not speak TLS; use http://".to_owned(),
        _ => error.to_string(),
    }
}
