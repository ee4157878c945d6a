//! Messages on the wire: a byte that says whether it is compressed, four that say how long it is, then the message.

use bytes::Bytes;
use switchboard_core::dialect::Package;
use switchboard_core::error::ProtocolError;

use super::status::GrpcStatus;

pub(super) const PREFIX_BYTES: usize = 5;

/// How long a message says it is; none before its prefix has come.
pub(super) fn declared(body: &[u8]) -> Option<usize> {
    let [_, length @ ..] = *body.first_chunk::<PREFIX_BYTES>()?;
    Some(usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX))
}

/// The one message of a request.
pub(super) fn unframe(mut body: Bytes) -> Result<Bytes, GrpcStatus> {
    let Some(length) = declared(&body) else { return Err(GrpcStatus::no_message()) };
    if body[0] != 0 {
        return Err(GrpcStatus::compressed());
    }
    let message = body.split_off(PREFIX_BYTES);
    if message.len() < length {
        let reason = format!("the message ends after {} of {length} bytes", message.len());
        return Err(GrpcStatus::of(Package::V1_0, &ProtocolError::InvalidRequest { reason }));
    }
    if message.len() > length {
        return Err(GrpcStatus::several_messages());
    }
    Ok(message)
}

/// A message with its prefix.
pub(super) fn framed(write: impl FnOnce(&mut Vec<u8>)) -> Result<Bytes, GrpcStatus> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    write(&mut out);
    let length = u32::try_from(out.len() - PREFIX_BYTES).map_err(|_| GrpcStatus::too_large())?;
    out[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(out.into())
}
