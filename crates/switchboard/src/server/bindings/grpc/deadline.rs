//! Until when the caller waits, as the metadata of a call says it.

use http::HeaderMap;
use switchboard_core::error::ProtocolError;
use tokio::time::{Duration, Instant};

use crate::server::edge::header_names::grpc::TIMEOUT;

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
