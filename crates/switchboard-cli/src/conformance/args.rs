//! What `conformance` and `doctor` are told on the command line: which agent, with which credentials.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use switchboard::ProtocolBinding;
use switchboard::client::{Client, StoredToken};
use switchboard::outbound::Trust;

use super::card::{Card, Reference};
use super::wire::{Binding, Interface, Version, Wire};
use crate::client::error::ClientError;
use crate::client::options::Flags;
use crate::client::printer::Printer;
use crate::client::settings::{Settings, Source, read_duration};
use crate::client::tokens::{KeptToken, Tokens, hosts_at};
use crate::client::{reference, session};
use crate::config::Environment;

const HELP: &str = "\
What the agent needs:
  Any agent that answers a text will do; --text chooses the text. Checks that need
  an agent at work are skipped unless --slow-text names a text on which it works
  for some seconds, and checks of a conversation unless --question-text names one
  at which it asks back. The checker makes some dozens of small tasks and leaves
  them there. Whether webhooks are delivered is checked of agents on this machine,
  and of others with --listen and --public-url.

Results:
  pass   as the specification has it
  FAIL   a MUST does not hold
  warn   a SHOULD does not hold
  note   a MAY is not made use of
  skip   could not be checked, with the reason

Examples:
  switchboard conformance http://127.0.0.1:8080 --slow-text 'slow 2' --question-text 'ask me'
  switchboard conformance -a https://agent.example -o junit --report conformance.xml
  switchboard conformance -a agent.example --only stream
  switchboard conformance -a https://agent.example --listen 0.0.0.0:9000 --public-url https://me.example/hooks
  switchboard conformance --list

Exit codes:
  0  no MUST failed, or --no-fail was given
  1  a MUST failed
  2  wrong usage
  3  the agent card could not be had";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Junit,
}

/// Which agent, and how to reach it.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AgentArgs {
    /// The agent: its address, as in https://agent.example
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The agent: its address, the URL of its card, or a file with its card [variable: A2ACLI_AGENT_CARD]
    #[arg(short = 'a', long, value_name = "REF", conflicts_with = "url")]
    pub(crate) agent_card: Option<String>,
    /// Only interfaces of this version: 1.0, 0.3, 0.2 or auto, which is all [default: auto; variable: A2ACLI_A2A_VERSION]
    #[arg(long, value_name = "VERSION")]
    pub(crate) a2a_version: Option<String>,
    /// Only interfaces of this binding: jsonrpc, http+json or grpc; repeatable [variable: A2ACLI_TRANSPORT]
    #[arg(long, value_name = "BINDING")]
    pub(crate) transport: Vec<String>,
    /// Token to send as `Authorization: Bearer` [default: that of `switchboard auth login`; variable: A2ACLI_BEARER]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) bearer: Option<String>,
    /// Key to send in the header that the card names, or in X-API-Key [variable: A2ACLI_API_KEY]
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// Header (or metadata of gRPC) to send with every call, as NAME:VALUE; repeatable [variable: A2ACLI_SVC_PARAM]
    #[arg(long, value_name = "NAME:VALUE")]
    pub(crate) svc_param: Vec<String>,
    /// How long one call may take, as in 500ms, 30s or 2m
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Also trust the certificate authorities in this file, in PEM form [variable: A2ACLI_CA_CERT]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// Certificate to show to the server, in PEM form [variable: A2ACLI_CLIENT_CERT]
    #[arg(long, value_name = "FILE")]
    pub(crate) client_cert: Option<String>,
    /// Private key of that certificate, in PEM form [variable: A2ACLI_CLIENT_KEY]
    #[arg(long, value_name = "FILE")]
    pub(crate) client_key: Option<String>,
    /// Do not verify the server's certificate [variable: A2ACLI_INSECURE]
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Read settings from this file in place of the nearest .env
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Call private addresses, too, if the card names them on another host than the agent's
    #[arg(long)]
    pub(crate) allow_private: bool,
}

#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct ConformanceArgs {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// How to print what was found
    #[arg(short = 'o', long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub(crate) output: Format,
    /// Write what was found to this file, and print a summary only
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Exit with 0 even if a MUST failed
    #[arg(long)]
    pub(crate) no_fail: bool,
    /// Only this check, or all checks whose names begin with this word; may be repeated
    #[arg(long, value_name = "CHECK")]
    pub(crate) only: Vec<String>,
    /// Print all checks, and call nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// File with public keys (PEM or a JSON Web Key set) that verify the signature of the card; repeatable [variable: A2ACLI_CARD_KEY]
    #[arg(long, value_name = "FILE")]
    pub(crate) card_key: Vec<String>,
    /// Address at which webhooks of the agent are received [default: one of 127.0.0.1 for an agent on this machine, else none]
    #[arg(long, value_name = "ADDR", help_heading = "Webhooks")]
    pub(crate) listen: Option<SocketAddr>,
    /// URL by which the agent reaches it [default: http and the address]
    #[arg(long, value_name = "URL", requires = "listen", help_heading = "Webhooks")]
    pub(crate) public_url: Option<String>,
    /// A text that the agent answers
    #[arg(long, value_name = "TEXT", default_value = "Hello", help_heading = "What the agent is told")]
    pub(crate) text: String,
    /// A text on which the agent works for some seconds
    #[arg(long, value_name = "TEXT", help_heading = "What the agent is told")]
    pub(crate) slow_text: Option<String>,
    /// A text at which the agent asks back
    #[arg(long, value_name = "TEXT", help_heading = "What the agent is told")]
    pub(crate) question_text: Option<String>,
}

/// The longest time that one call may take.
const CALL_TIME_MAX: Duration = Duration::from_secs(24 * 3_600);

/// `500ms`, `2s`, `5m`, `1h`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let read = read_duration(text).filter(|time| !time.is_zero() && *time <= CALL_TIME_MAX);
    read.ok_or_else(|| format!("{text:?} is no time; expected one such as 500ms, 30s, 2m or 1h"))
}

/// The agent that the command line and the environment name.
pub(crate) struct Agent {
    pub(crate) reference: Reference,
    /// The host, URL or file, and the name under which a login is kept.
    named: String,
    given: String,
    /// The tokens of earlier logins.
    tokens: Option<Tokens>,
    /// Interfaces that are looked at.
    choice: Choice,
    pub(crate) settings: Settings,
    timeout: Duration,
    pub(crate) trust: Trust,
    /// Whether the addresses of the card may be private; of an agent that a registry named, also that of the card.
    allow_private: bool,
    is_foreign: bool,
}

impl Agent {
    /// # Errors
    /// When none is named.
    pub(crate) async fn named(
        args: &AgentArgs,
        more: impl FnOnce(Flags) -> Flags,
        environment: &Environment,
        printer: &Printer,
    ) -> Result<Self, ClientError> {
        let ca_cert = args.ca_cert.as_ref().map(|path| path.display().to_string());
        let flags = Flags::default()
            .text("agent-card", args.url.as_ref().or(args.agent_card.as_ref()))
            .text("a2a-version", args.a2a_version.as_ref())
            .list("transport", &args.transport)
            .text("bearer", args.bearer.as_ref())
            .text("api-key", args.api_key.as_ref())
            .list("svc-param", &args.svc_param)
            .text("client-cert", args.client_cert.as_ref())
            .text("client-key", args.client_key.as_ref())
            .switch("insecure", args.insecure)
            .text("ca-cert", ca_cert.as_ref());
        let settings = Settings::read(&more(flags), args.config.as_deref(), environment, Path::new(""))?;
        for warning in &settings.warnings {
            printer.warn(warning);
        }
        let Some(given) = settings.text("agent-card") else {
            return Err(ClientError::usage("no agent is named")
                .with_hint("Name one with --agent-card, as in --agent-card https://agent.example"));
        };
        let choice = Choice::read(&settings)?;
        let trust = session::trust(&settings, printer)?;
        let (named, is_foreign) = reference::named_by(given, &settings, &trust).await?;
        Ok(Self {
            reference: Reference::parse(&named),
            given: given.to_owned(),
            named,
            tokens: Tokens::of(environment),
            choice,
            timeout: args.timeout.unwrap_or(Duration::from_secs(30)),
            trust,
            allow_private: args.allow_private,
            is_foreign,
            settings,
        })
    }

    /// Whether the agent is on this machine, as far as its address tells.
    pub(crate) fn is_here(&self) -> bool {
        let host = self.reference.host().unwrap_or_default();
        let host = host.trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// # Errors
    /// When a certificate or a credential cannot be used.
    pub(crate) fn wire(&self) -> Result<Wire, String> {
        let host = if self.is_foreign { Some(String::new()) } else { self.reference.host() };
        let wire = Wire::new(host, self.allow_private, self.trust.clone(), self.timeout);
        let mut wire = wire.map_err(|error| error.to_string())?;
        if let Some(bearer) = self.settings.text("bearer") {
            wire.credentials.push((http::header::AUTHORIZATION, secret("--bearer", &format!("Bearer {bearer}"))?));
        }
        if let Some(key) = self.settings.text("api-key") {
            wire.credentials.push((HeaderName::from_static("x-api-key"), secret("--api-key", key)?));
        }
        for param in self.settings.list("svc-param") {
            let (name, value) = session::svc_param(param).map_err(|error| error.message)?;
            let name =
                HeaderName::try_from(name).map_err(|_| format!("--svc-param: {name:?} is no name of a header"))?;
            wire.credentials.push((name, secret("--svc-param", value)?));
        }
        Ok(wire)
    }

    /// Leaves the interfaces that the user chose.
    ///
    /// # Errors
    /// When the card has none of them.
    pub(crate) fn choose(&self, card: &mut Card) -> Result<(), ClientError> {
        let all = std::mem::take(&mut card.interfaces);
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        (card.interfaces, card.left_out) = all.into_iter().partition(|to| self.choice.takes(to));
        if card.interfaces.is_empty() && !names.is_empty() {
            return Err(ClientError::usage("the card has no interface of this version and binding")
                .with_hint(format!("It has: {}", names.join(", "))));
        }
        Ok(())
    }

    /// Adds the token of an earlier login unless one was named, and puts the key where the card says that it belongs.
    ///
    /// # Errors
    /// When the file of tokens cannot be read.
    pub(crate) async fn prove(&self, wire: &mut Wire, card: &Card, printer: &Printer) -> Result<(), ClientError> {
        self.prove_by_login(wire, card, printer).await?;
        self.place_key(wire, card);
        Ok(())
    }

    /// As the other client commands do: the token goes only where the card led at the login, and is renewed if it has expired.
    async fn prove_by_login(&self, wire: &mut Wire, card: &Card, printer: &Printer) -> Result<(), ClientError> {
        let (Some(tokens), None) = (&self.tokens, self.settings.text("bearer")) else { return Ok(()) };
        let hosts = hosts_at(card.interfaces.iter().map(|to| to.url.as_str()));
        let Some(mut kept) = tokens.for_agent(&self.given, &hosts, printer)? else { return Ok(()) };
        if kept.token.is_expired() {
            match self.renewed(&kept).await {
                Ok(token) => {
                    kept.token = token;
                    tokens.put(&self.given, kept.clone())?;
                }
                Err(why) => {
                    printer.warn(format!("the token of the login has expired and is not sent: {why}"));
                    return Ok(());
                }
            }
        }
        let bearer = secret("the token of the login", &format!("Bearer {}", kept.token.access_token));
        wire.credentials.push((http::header::AUTHORIZATION, bearer.map_err(ClientError::usage)?));
        Ok(())
    }

    async fn renewed(&self, kept: &KeptToken) -> Result<StoredToken, String> {
        let client = Client::builder().trust(self.trust.clone()).build().map_err(|error| error.to_string())?;
        let client = if self.is_foreign { client.strict_addresses() } else { client };
        let place = reference::read(&self.named).map_err(|error| error.message)?;
        let login = client.login_at(&place, kept.application(&self.settings)).await;
        let login = login.map_err(|error| error.to_string())?;
        login.renewed(&kept.token).await.map_err(|error| error.to_string())
    }

    fn place_key(&self, wire: &mut Wire, card: &Card) {
        let key = self.settings.text("api-key");
        let Some((name, at)) = key.and_then(|_| api_key_place(&card.json)) else { return };
        for (header, value) in &mut wire.credentials {
            if *header != "x-api-key" {
                continue;
            }
            if at == "header"
                && let Ok(named) = HeaderName::try_from(&name)
            {
                *header = named;
            } else if at == "cookie"
                && let Ok(cookie) = HeaderValue::from_str(&format!("{name}={}", value.to_str().unwrap_or_default()))
            {
                (*header, *value) = (http::header::COOKIE, cookie);
            }
        }
    }
}

/// Which interfaces of a card are looked at.
#[derive(Clone, Debug, Default)]
struct Choice {
    /// None for all.
    version: Option<Version>,
    /// Empty for all.
    bindings: Vec<Binding>,
}

impl Choice {
    /// What the client commands are told of versions and bindings. They default to 1.0; here all versions count unless one is named.
    fn read(settings: &Settings) -> Result<Self, ClientError> {
        let named = settings.value("a2a-version").filter(|value| value.source != Source::BuiltIn);
        let version = match named.and_then(|value| value.texts.first()).map(String::as_str) {
            None | Some("auto") => None,
            Some(text) => Some(Version::parse(text).ok_or_else(|| {
                ClientError::usage(format!("--a2a-version {text:?} is not known"))
                    .with_hint("Use 1.0, 0.3, 0.2, or auto for all of them")
            })?),
        };
        let read = |name: &String| match reference::binding(name) {
            Some(ProtocolBinding::JsonRpc) => Ok(Binding::JsonRpc),
            Some(ProtocolBinding::HttpJson) => Ok(Binding::HttpJson),
            Some(ProtocolBinding::Grpc) => Ok(Binding::Grpc),
            _ => Err(ClientError::usage(format!("--transport {name:?} is not known"))
                .with_hint("Use jsonrpc, http+json or grpc")),
        };
        Ok(Self { version, bindings: settings.list("transport").iter().map(read).collect::<Result<_, _>>()? })
    }

    fn takes(&self, to: &Interface) -> bool {
        self.version.is_none_or(|version| version == to.version)
            && (self.bindings.is_empty() || self.bindings.contains(&to.binding))
    }
}

fn secret(flag: &str, value: &str) -> Result<HeaderValue, String> {
    let mut value =
        HeaderValue::from_str(value).map_err(|_| format!("{flag}: the value cannot be sent in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The name under which a card wants an API key, and whether that is a header or a cookie. In the form of 1.0 or of 0.3.
fn api_key_place(card: &Value) -> Option<(String, String)> {
    let schemes = card["securitySchemes"].as_object()?.values();
    schemes.into_iter().find_map(|scheme| {
        let (scheme, at) = match scheme.get("apiKeySecurityScheme") {
            Some(inner) => (inner, "location"),
            None if scheme["type"] == "apiKey" => (scheme, "in"),
            None => return None,
        };
        Some((scheme["name"].as_str()?.to_owned(), scheme[at].as_str()?.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::{api_key_place, duration};
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, ms) in [("500ms", 500), ("2s", 2_000), ("5m", 300_000), ("1h", 3_600_000), ("7", 7_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0", "-1s", "2 weeks", "99999999999999999999", "25h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_goes_where_the_card_wants_it() {
        let new = json!({ "securitySchemes": { "k": { "apiKeySecurityScheme": { "location": "header", "name": "X-Key" } } } });
        let old = json!({ "securitySchemes": { "k": { "type": "apiKey", "in": "cookie", "name": "key" } } });
        assert_eq!(api_key_place(&new), Some(("X-Key".to_owned(), "header".to_owned())));
        assert_eq!(api_key_place(&old), Some(("key".to_owned(), "cookie".to_owned())));
        assert_eq!(api_key_place(&json!({})), None);
    }
}
