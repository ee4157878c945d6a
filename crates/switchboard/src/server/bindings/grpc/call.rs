//! What a call says before its message: which method of which agent, and until when somebody waits.

use std::borrow::Cow;

use http::HeaderMap;
use switchboard_core::dialect::Package;
use switchboard_core::error::ProtocolError;
use tokio::time::{Duration, Instant};

use crate::server::edge::header_names::grpc::TIMEOUT;
use crate::server::edge::percent::decode;

/// What is called.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Called<'a> {
    /// None is the default agent.
    pub(super) agent: Option<Cow<'a, str>>,
    pub(super) package: Package,
    pub(super) method: &'a str,
}

impl<'a> Called<'a> {
    /// Reads `/{service}/{method}`; before it may stand the path of the public URL, and `/agents/{name}`, for clients that can
    /// call below a path.
    pub(super) fn parse(path: &'a str, base: &str) -> Option<Self> {
        let path = path.strip_prefix(base).filter(|rest| rest.starts_with('/')).unwrap_or(path);
        let (place, method) = path.rsplit_once('/')?;
        let (place, service) = place.rsplit_once('/')?;
        let agent = match place {
            "" => None,
            place => Some(decode(place.strip_prefix("/agents/").filter(|name| !name.contains('/'))?)?),
        };
        let package = match service {
            "lf.a2a.v1.A2AService" => Package::V1_0,
            "a2a.v1.A2AService" => Package::V0_3,
            _ => return None,
        };
        Some(Self { agent, package, method })
    }
}

/// Until when the caller waits, from `grpc-timeout`: up to eight digits and a unit.
pub(super) fn deadline(headers: &HeaderMap) -> Result<Option<Instant>, ProtocolError> {
    let Some(value) = headers.get(TIMEOUT) else { return Ok(None) };
    let timeout = value.to_str().ok().and_then(parse_timeout);
    let timeout = timeout.ok_or_else(|| ProtocolError::InvalidRequest {
        reason: "grpc-timeout must be up to eight digits and one of H, M, S, m, u, n".to_owned(),
    })?;
    Ok(Instant::now().checked_add(timeout))
}

pub(super) fn parse_timeout(text: &str) -> Option<Duration> {
    let unit = text.chars().last().filter(char::is_ascii)?;
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(number * 3600)),
        'M' => Some(Duration::from_secs(number * 60)),
        'S' => Some(Duration::from_secs(number)),
        'm' => Some(Duration::from_millis(number)),
        'u' => Some(Duration::from_micros(number)),
        'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}
