//! How the model is spelled on the wire. A dialect is a pure translator in a folder of its own, and a [`Row`] in that
//! folder says what is particular to it. All other code goes through methods of [`Dialect`]: servers use
//! `dialect.rules()` and `dialect.write_reply(…)`, clients use `dialect.write_call(…)` and `dialect.read_reply(…)`.
//! What gRPC carries is encoded by a [`Package`], which has the same methods. Dialects do not import each other.

pub mod codes;
pub mod compat;
pub mod detect;
#[cfg(test)]
mod fuzz_tests;
pub mod json;
mod outgoing;
#[cfg(feature = "protobuf")]
pub mod protobuf;
mod row;
#[cfg(test)]
mod testing;
pub mod v0_3;
pub mod v1_0;
pub mod wire;

pub use crate::model::{Dialect, Package};
pub use outgoing::{OutgoingCall, Transport, WrittenCall};
pub use row::{Forms, Row, vocabulary_of_package};

#[cfg(feature = "protobuf")]
use bytes::Bytes;

use crate::call::{Reply, Request};
use crate::error::ProtocolError;
use crate::model::{AgentCard, Rules, TaskView, Update};

use json::DecodeLimits;
#[cfg(feature = "protobuf")]
use json::Decoded;

impl Dialect {
    /// All that is particular to this dialect.
    #[must_use]
    pub fn row(self) -> &'static Row {
        match self {
            Self::V1_0 => &v1_0::ROW,
            Self::V0_3 => &v0_3::rpc::ROW,
            Self::V0_3Rest => &v0_3::rest::ROW,
            Self::AgentNative => &compat::agent_native::ROW,
            Self::Selectools => &compat::selectools::ROW,
            Self::Corvid => &compat::corvid::ROW,
            Self::Nexus => &compat::nexus::ROW,
        }
    }

    /// What is done otherwise for its clients.
    #[must_use]
    pub fn rules(self) -> &'static Rules {
        &self.row().rules
    }

    /// Writes the result of a call.
    pub fn write_reply(self, reply: &Reply, out: &mut Vec<u8>) {
        (self.row().forms.reply)(reply, out);
    }

    /// Writes one update of a stream.
    pub fn write_update(self, update: &Update, out: &mut Vec<u8>) {
        (self.row().forms.update)(update, out);
    }

    /// Writes a task for a webhook that is sent whole ones.
    pub fn write_pushed_task(self, view: &TaskView, out: &mut Vec<u8>) {
        (self.row().forms.pushed_task)(view, out);
    }

    /// Writes a JSON-RPC error response.
    pub fn write_rpc_error(self, error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
        (self.row().forms.rpc_error)(error, id, out);
    }

    /// The HTTP status of a refusal.
    #[must_use]
    pub fn http_status(self, error: &ProtocolError) -> u16 {
        (self.row().forms.http_status)(error)
    }

    /// Writes the body of an HTTP error that is answered with the given status.
    pub fn write_http_error(self, error: &ProtocolError, http: u16, out: &mut Vec<u8>) {
        (self.row().forms.http_error)(error, http, out);
    }

    /// Writes a call to an agent that speaks this dialect.
    ///
    /// # Errors
    /// [`ProtocolError::UnsupportedOperation`] naming a call or a transport that the dialect does not have, or
    /// [`ProtocolError::InvalidParams`] naming what it cannot say.
    pub fn write_call(self, call: &OutgoingCall<'_>) -> Result<WrittenCall, ProtocolError> {
        (self.row().forms.call)(call)
    }

    /// Reads what `request` was answered with: the result of JSON-RPC, or the body of HTTP. The answer to a call that is
    /// streamed is read as the one to the same call that is not.
    ///
    /// # Errors
    /// [`ProtocolError::ParseError`] when it is not JSON, else [`ProtocolError::InvalidParams`] naming the field.
    pub fn read_reply(self, request: &Request, text: &[u8], limits: &DecodeLimits) -> Result<Reply, ProtocolError> {
        (self.row().forms.read_reply)(request, text, limits)
    }

    /// Reads one update of a stream.
    ///
    /// # Errors
    /// As [`Dialect::read_reply`].
    pub fn read_update(self, text: &[u8], limits: &DecodeLimits) -> Result<Update, ProtocolError> {
        (self.row().forms.read_update)(text, limits)
    }

    /// Reads the body of a refusal, which came with the status `http` if it came over plain HTTP. None if it is none.
    #[must_use]
    pub fn read_error(self, body: &[u8], http: Option<u16>) -> Option<wire::ReceivedError> {
        (self.row().forms.read_error)(body, http)
    }

    /// Reads an agent card.
    ///
    /// # Errors
    /// As [`Dialect::read_reply`].
    pub fn read_card(self, body: &[u8], limits: &DecodeLimits) -> Result<AgentCard, ProtocolError> {
        (self.row().forms.read_card)(body, limits)
    }
}

#[cfg(feature = "protobuf")]
impl Package {
    /// Reads a gRPC call.
    ///
    /// # Errors
    /// [`ProtocolError::MethodNotFound`], [`ProtocolError::InvalidRequest`] when the bytes are no message of the method, or
    /// [`ProtocolError::InvalidParams`] naming the fields at fault.
    pub fn read_call(self, method: &str, message: Bytes, limits: &DecodeLimits) -> Result<Decoded, ProtocolError> {
        match self {
            Self::V1_0 => v1_0::proto::read_call(method, message, limits),
            Self::V0_3 => v0_3::proto::read_call(method, message, limits),
        }
    }

    /// Appends the message of a gRPC call, and says the name of its method. None for a call that this version does not have: 0.3
    /// has no list of tasks. Nor does it name a tenant.
    #[must_use]
    pub fn write_call(self, request: &Request, tenant: Option<&str>, out: &mut Vec<u8>) -> Option<&'static str> {
        match self {
            Self::V1_0 => Some(v1_0::proto::write_call(request, tenant, out)),
            Self::V0_3 => v0_3::proto::write_call(request, out),
        }
    }

    /// Reads what a gRPC call of this method is answered with. A stream is read by [`Package::read_update`].
    ///
    /// # Errors
    /// [`ProtocolError::InvalidAgentResponse`] when the bytes are no message that answers the method,
    /// [`ProtocolError::InvalidParams`] naming the fields at fault, or [`ProtocolError::MethodNotFound`].
    pub fn read_reply(self, method: &str, message: Bytes, limits: &DecodeLimits) -> Result<Reply, ProtocolError> {
        match self {
            Self::V1_0 => v1_0::proto::read_reply(method, message, limits),
            Self::V0_3 => v0_3::proto::read_reply(method, message, limits),
        }
    }

    /// Appends the result of a gRPC call. A stream has none.
    pub fn write_reply(self, reply: &Reply, out: &mut Vec<u8>) {
        match self {
            Self::V1_0 => v1_0::proto::write_reply(reply, out),
            Self::V0_3 => v0_3::proto::write_reply(reply, out),
        }
    }

    /// Reads one update of a gRPC stream.
    ///
    /// # Errors
    /// As [`Package::read_reply`].
    pub fn read_update(self, message: Bytes, limits: &DecodeLimits) -> Result<Update, ProtocolError> {
        match self {
            Self::V1_0 => v1_0::proto::read_update(message, limits),
            Self::V0_3 => v0_3::proto::read_update(message, limits),
        }
    }

    /// Appends one update of a gRPC stream.
    pub fn write_update(self, update: &Update, out: &mut Vec<u8>) {
        match self {
            Self::V1_0 => v1_0::proto::write_update(update, out),
            Self::V0_3 => v0_3::proto::write_update(update, out),
        }
    }

    /// A refusal of a gRPC call. It is read by [`protobuf::read_error`], whichever package it came from.
    #[must_use]
    pub fn write_error(self, error: &ProtocolError) -> protobuf::Status {
        match self {
            Self::V1_0 => v1_0::proto::write_error(error),
            Self::V0_3 => v0_3::proto::write_error(error),
        }
    }
}

/// How a task is shown to a client whose request could be of several dialects (`detect::Detected::is_open`): in 0.3,
/// with what clients of the dialect it was begun in look for. Where 0.3 cannot hold that, such as a status that is a
/// word, the task is shown in the dialect it was begun in.
#[must_use]
pub fn for_open_reader(view: TaskView) -> (Dialect, TaskView) {
    (view.task.dialect.row().forms.for_open_reader)(view)
}
