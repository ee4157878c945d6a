//! One connection to a server: the introduction, and then hints both ways until it is lost.

use std::pin::pin;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::options::{Encryption, Login, Place};
use super::wire::{Incoming, Info, Said};
use crate::hint_box::HintBox;

/// The longest time for a connection to be made, and for a server to take what is written.
const PATIENCE_S: u64 = 5;
const PATIENCE: Duration = Duration::from_secs(PATIENCE_S);
/// How often a server is asked whether it is still there; it has until the next time to answer.
const PING_EVERY_S: u64 = 10;
/// The longest time for the last hints of a process that stops.
const CLOSING_MS_MAX: u64 = 1_000;
/// The pause between two batches of hints, in which they are gathered.
const GATHER_MS: u64 = 2;
/// The largest payload; servers take at least 1 MiB unless they are told otherwise.
const PAYLOAD_BYTES_MAX: usize = 16 << 10;
/// How many bytes are read at once.
const READ_BYTES: usize = 16 << 10;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection on which hints can be sent and received.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    incoming: Incoming,
    pub(super) version: String,
}

impl Connection {
    /// Connects to one of the servers of a place. The reason of a failure names no address.
    pub(super) async fn make(place: &Place, server: &(String, u16)) -> Result<Self, String> {
        match timeout(PATIENCE, Self::introduce(place, server)).await {
            Ok(made) => made,
            Err(_) => Err(format!("the server did not answer within {PATIENCE_S} s")),
        }
    }

    async fn introduce(place: &Place, (host, port): &(String, u16)) -> Result<Self, String> {
        let stream = TcpStream::connect((&**host, *port)).await.map_err(|error| unreachable(&error))?;
        stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
        let mut this = Self { stream: Box::new(stream), incoming: Incoming::default(), version: String::new() };
        if place.encryption == Encryption::First {
            this = this.encrypted(place, host).await?;
        }
        let Said::Info(info) = this.hear().await? else { return Err("the server did not introduce itself".to_owned()) };
        let encrypts = match place.encryption {
            Encryption::Off if info.tls_required => {
                return Err("the server requires TLS; remove tls=disable from the address".to_owned());
            }
            Encryption::Off | Encryption::First => false,
            Encryption::AsTheServerSays => info.tls_required,
            Encryption::Required if !(info.tls_required || info.tls_available) => {
                return Err("the server does not support TLS; turn it on there, or add ?tls=disable".to_owned());
            }
            Encryption::Required => true,
        };
        if encrypts {
            this = this.encrypted(place, host).await?;
        }
        let is_encrypted = encrypts || place.encryption == Encryption::First;
        let hello = hello(&place.login, &info, is_encrypted)?;
        let subscribe = format!("CONNECT {hello}\r\nSUB {}.* 1\r\nPING\r\n", place.subject);
        this.say(subscribe.as_bytes()).await?;
        this.version = info.version;
        loop {
            match this.hear().await? {
                Said::Pong => return Ok(this),
                Said::Error(why) => return Err(refusal(&why)),
                Said::Ping => this.say(b"PONG\r\n").await?,
                Said::Info(_) | Said::Message(_) | Said::Other => {}
            }
        }
    }

    async fn encrypted(self, place: &Place, host: &str) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| "the host is no name for TLS".to_owned())?;
        let connector = tokio_rustls::TlsConnector::from(place.tls.clone());
        let stream = connector.connect(name, self.stream).await.map_err(|error| {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(tls) => {
                    format!("its certificate is not trusted ({tls}); tlsrootcert names the file of its authority")
                }
                None => format!("TLS failed ({})", error.kind()),
            }
        })?;
        Ok(Self { stream: Box::new(stream), ..self })
    }

    async fn hear(&mut self) -> Result<Said, String> {
        loop {
            if let Some(said) = self.incoming.next().map_err(|wrong| wrong.0.to_owned())? {
                return Ok(said);
            }
            // What was read stays in the buffer if this future is dropped.
            self.incoming.buffer.reserve(READ_BYTES);
            match self.stream.read_buf(&mut self.incoming.buffer).await {
                Ok(0) => return Err("the server closed the connection".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(unreachable(&error)),
            }
        }
    }

    async fn say(&mut self, bytes: &[u8]) -> Result<(), String> {
        let write = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match timeout(PATIENCE, write).await {
            Ok(written) => written.map_err(|error| unreachable(&error)),
            Err(_) => Err("the server takes nothing any more".to_owned()),
        }
    }

    /// Sends and receives hints until the connection is lost, and says why it was; none if this process closes it.
    pub(super) async fn carry(
        mut self,
        place: &Place,
        hints: &HintBox,
        closing: impl Future<Output = ()>,
    ) -> Option<String> {
        let mut closing = pin!(closing);
        let mut pings = interval(Duration::from_secs(PING_EVERY_S));
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        let (mut is_asked, mut send_at) = (false, Instant::now());
        loop {
            let result = tokio::select! {
                biased;
                () = &mut closing => {
                    // Others learn what this process has given back.
                    let _ = timeout(Duration::from_millis(CLOSING_MS_MAX), self.say_last(&publish(place, hints))).await;
                    return None;
                }
                said = self.hear() => match said {
                    Ok(Said::Message(payload)) => {
                        hints.received(&String::from_utf8_lossy(&payload));
                        Ok(())
                    }
                    Ok(Said::Ping) => self.say(b"PONG\r\n").await,
                    Ok(Said::Pong) => {
                        is_asked = false;
                        Ok(())
                    }
                    Ok(Said::Error(why)) => complaint(&why),
                    Ok(Said::Info(info)) if info.ldm => Err("the server is going down".to_owned()),
                    Ok(Said::Info(_) | Said::Other) => Ok(()),
                    Err(why) => Err(why),
                },
                _ = pings.tick() => match std::mem::replace(&mut is_asked, true) {
                    true => Err("the server does not answer".to_owned()),
                    false => self.say(b"PING\r\n").await,
                },
                () = async { sleep_until(send_at).await; hints.wait().await } => {
                    send_at = Instant::now() + Duration::from_millis(GATHER_MS);
                    self.say(&publish(place, hints)).await
                }
            };
            if let Err(why) = result {
                return Some(why);
            }
        }
    }

    /// Says something, and waits until the server has heard it.
    async fn say_last(&mut self, bytes: &[u8]) -> Result<(), String> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.say(bytes).await?;
        // The answer to an earlier question may come first.
        self.say(b"PING\r\nPING\r\n").await?;
        for _ in 0..2 {
            while !matches!(self.hear().await?, Said::Pong) {}
        }
        Ok(())
    }
}

/// All hints that wait, as lines of the protocol.
fn publish(place: &Place, hints: &HintBox) -> Vec<u8> {
    let mut lines = Vec::new();
    for (channel, payload) in hints.take(PAYLOAD_BYTES_MAX) {
        lines.extend_from_slice(
            format!("PUB {}.h{channel} {}\r\n{payload}\r\n", place.subject, payload.len()).as_bytes(),
        );
    }
    lines
}

/// What a client says about itself. It does not want its own messages back.
fn hello(login: &Login, info: &Info, is_encrypted: bool) -> Result<String, String> {
    let mut hello = serde_json::json!({
        "verbose": false, "pedantic": false, "tls_required": is_encrypted, "lang": "rust", "name": "switchboard",
        "version": env!("CARGO_PKG_VERSION"), "protocol": 1, "echo": false,
    });
    let mut set = |name: &str, value: &str| hello[name] = value.into();
    match login {
        Login::Nobody => {}
        Login::User { name, password } => {
            set("user", name);
            set("pass", password);
        }
        Login::Token(token) => set("auth_token", token),
        Login::Credentials(credentials) => {
            let nonce = info.nonce.as_deref().ok_or("the server does not ask for credentials")?;
            if let Some(token) = &credentials.token {
                set("jwt", token);
            }
            set("nkey", &credentials.public_key());
            set("sig", &credentials.sign(nonce));
        }
    }
    Ok(hello.to_string())
}

/// What a server refuses a client for.
fn refusal(why: &str) -> String {
    match why.to_ascii_lowercase() {
        why if why.contains("authorization") || why.contains("authentication") => {
            "the server refused the user, the token or the credentials".to_owned()
        }
        why if why.contains("permissions violation") => {
            "the user may not subscribe to the subject of hints; it needs the rights to publish and subscribe to SUBJECT.SCHEMA.*".to_owned()
        }
        why if why.contains("secure connection") => "the server requires TLS".to_owned(),
        _ => "the server refused the connection".to_owned(),
    }
}

/// What a server says while a connection is open: it closes the connection, except if only one message was not allowed.
fn complaint(why: &str) -> Result<(), String> {
    if why.to_ascii_lowercase().contains("permissions violation") {
        tracing::warn!("{}", refusal(why).replace("subscribe to the subject", "publish or subscribe to the subject"));
        return Ok(());
    }
    Err(refusal(why))
}

fn unreachable(error: &std::io::Error) -> String {
    format!("NATS cannot be reached ({})", error.kind())
}
