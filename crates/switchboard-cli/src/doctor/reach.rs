//! The way to the port: the name, its addresses, and TLS.

use std::net::SocketAddr;
use std::time::Duration;

use http::Uri;
use rustls::CertificateError;
use switchboard::outbound::Trust;
use switchboard_core::model::Timestamp;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::certificate::not_after;
use super::{Finding, fine, hint, wrong};
use crate::conformance::wire::shown;

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;
/// A connection that takes longer is worth a remark.
const SLOW: Duration = Duration::from_secs(1);
/// A certificate that expires sooner is worth a remark.
const DAYS_LEFT_MIN: i64 = 14;
/// In milliseconds.
const DAY: i64 = 86_400_000;

/// What is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: String,
    port: u16,
    is_tls: bool,
}

impl Target {
    /// # Errors
    /// When the URL cannot be connected to, in words.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let wrong =
            || format!("{:?} is no address of an agent; expected one such as https://agent.example", shown(url));
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err(wrong()),
        };
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { host, port, is_tls })
    }

    pub(super) async fn addresses(&self, limit: Duration) -> Result<Vec<SocketAddr>, String> {
        match timeout(limit, tokio::net::lookup_host((self.host.as_str(), self.port))).await {
            Ok(Ok(found)) => Ok(found.collect()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {limit:?}")),
        }
    }
}

/// Whether the agent can be called at all; what is wrong is among the findings.
pub(super) async fn examine(
    target: &Target,
    trust: &Trust,
    limit: Duration,
    now: Timestamp,
    findings: &mut Vec<Finding>,
) -> bool {
    let addresses = match target.addresses(limit).await {
        Ok(addresses) if !addresses.is_empty() => addresses,
        Ok(_) => {
            findings.push(wrong("dns", format!("{} has no address", target.host), NAME_FIX));
            return false;
        }
        Err(why) => {
            findings.push(wrong("dns", format!("{} could not be resolved: {why}", target.host), NAME_FIX));
            return false;
        }
    };
    let listed: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
    findings.push(fine("dns", format!("{} is {}", target.host, listed.join(", "))));
    let Some(stream) = connect(target, &addresses, limit, findings).await else { return false };
    if !target.is_tls {
        findings.extend(plain(target, &addresses));
        return true;
    }
    handshake(target, stream, trust, limit, now, findings).await
}

const NAME_FIX: &str = "check the spelling of the name, and whether this machine's DNS knows it (VPN, /etc/hosts)";

/// A connection to the first address that takes one. All are tried, since clients choose as they like.
async fn connect(
    target: &Target,
    addresses: &[SocketAddr],
    limit: Duration,
    findings: &mut Vec<Finding>,
) -> Option<TcpStream> {
    let (mut open, mut failed) = (None, Vec::new());
    for address in addresses.iter().take(ADDRESSES_MAX) {
        let started = Instant::now();
        match timeout(limit.min(Duration::from_secs(10)), TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let (took, text) = (started.elapsed(), format!("{address} was connected to in"));
                findings.push(match took > SLOW {
                    true => {
                        hint("tcp", format!("{text} {took:.1?}"), "look for packet loss or a distant region on the way")
                    }
                    false => fine("tcp", format!("{text} {} ms", took.as_millis())),
                });
                open = open.or(Some(stream));
            }
            Ok(Err(error)) => failed.push((address, error.to_string())),
            Err(_) => failed.push((address, "no answer".to_owned())),
        }
    }
    for (address, why) in &failed {
        let text = format!("{address} cannot be connected to: {why}");
        findings.push(match open.is_some() {
            true => hint("tcp", text, "remove the address from DNS or serve it, since some clients try it first"),
            false => wrong("tcp", text, tcp_fix(why, target)),
        });
    }
    open
}

fn tcp_fix(why: &str, target: &Target) -> String {
    match why.to_ascii_lowercase().contains("refused") {
        true => format!("start the server, or check that it listens on port {} of this address", target.port),
        false => format!("check firewalls and security groups for port {}", target.port),
    }
}

/// What plain HTTP means here.
fn plain(target: &Target, addresses: &[SocketAddr]) -> Option<Finding> {
    let is_near = addresses.iter().all(|address| is_private(address.ip()));
    (!is_near).then(|| {
        let text =
            format!("{} is called without TLS: all of it, credentials included, can be read on the way", target.host);
        hint("tls", text, "use https://, as the specification demands of production (section 7.1)")
    })
}

/// Whether an address is of this machine or its own network.
pub(super) fn is_private(ip: std::net::IpAddr) -> bool {
    match ip.to_canonical() {
        std::net::IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified(),
        std::net::IpAddr::V6(ip) => {
            ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
    }
}

async fn handshake(
    target: &Target,
    stream: TcpStream,
    trust: &Trust,
    limit: Duration,
    now: Timestamp,
    findings: &mut Vec<Finding>,
) -> bool {
    let seen = match timeout(limit, trust.examine(&target.host, stream)).await {
        Err(_) => {
            findings.push(wrong("tls", format!("the handshake took longer than {limit:?}"), NOT_TLS_FIX));
            return false;
        }
        Ok(Err(why)) => {
            findings.push(wrong("tls", format!("the handshake failed: {}", shown(&why)), NOT_TLS_FIX));
            return false;
        }
        Ok(Ok(seen)) => seen,
    };
    let finding = match &seen.refusal {
        Some(error) => refused(target, error, seen.chain),
        None => expiry(&seen.leaf, now),
    };
    let is_trusted = seen.refusal.is_none();
    findings.push(finding);
    is_trusted
}

const NOT_TLS_FIX: &str = "check that this port speaks TLS (1.2 or 1.3); if it speaks plain HTTP, call it as http:// or put a proxy with TLS before it";

fn expiry(leaf: &[u8], now: Timestamp) -> Finding {
    let Some(until) = not_after(leaf) else { return fine("tls", "the certificate is valid") };
    let days = until.ms_since(now) / DAY;
    match days < DAYS_LEFT_MIN {
        true => hint("tls", format!("the certificate expires in {days} days"), "renew it, and automate the renewal"),
        false => fine("tls", format!("the certificate is valid for {days} more days")),
    }
}

/// Why a client refuses the certificate, and the way out.
fn refused(target: &Target, error: &CertificateError, chain: usize) -> Finding {
    let host = &target.host;
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            wrong("tls", "the certificate has expired", "renew the certificate, and have the server load the new one")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            wrong("tls", "the certificate is not valid yet", "check the clock of this machine, or wait")
        }
        CertificateError::NotValidForNameContext { presented, .. } => wrong(
            "tls",
            format!("the certificate is not for {host} but for {}", presented.join(", ")),
            "call the agent by a name of the certificate, or get a certificate for this one",
        ),
        CertificateError::NotValidForName => wrong(
            "tls",
            format!("the certificate is not for {host}"),
            "call the agent by a name of the certificate, or get a certificate for this one",
        ),
        CertificateError::UnknownIssuer if chain == 1 => wrong(
            "tls",
            "no known authority issued the certificate, and the server sends no other with it",
            "serve the full chain with the intermediate certificate, or trust its authority with --ca-cert",
        ),
        CertificateError::UnknownIssuer => wrong(
            "tls",
            format!("no known authority issued the certificate, although the server sends {chain}"),
            "trust its authority with --ca-cert, or use a certificate of a public authority",
        ),
        other => wrong(
            "tls",
            format!("the certificate cannot be verified: {other:?}"),
            "use a certificate for servers of a public authority",
        ),
    }
}
