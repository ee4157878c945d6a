//! Errors: those of opening a database, for people to read, and those of an open store, for the engine to act on. Texts name
//! what to change; they name no host, no password and nothing that is stored.

use std::fmt;

use switchboard_engine::ports::store::StoreError;
use tokio_postgres::error::SqlState;

/// Why a database cannot be used.
#[derive(Debug)]
pub struct PostgresError(pub(super) String);

impl fmt::Display for PostgresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL: {}", self.0)
    }
}

impl std::error::Error for PostgresError {}

impl From<Failure> for PostgresError {
    fn from(failure: Failure) -> Self {
        Self(failure.reason)
    }
}

/// What went wrong with a statement.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The connection is gone, or the server is going down; whether the statement was executed is not known.
    Connection,
    /// Another transaction was in the way, and nothing was written: the same statement may succeed.
    Contention,
    /// Anything else. Nothing was written.
    Other,
}

impl Failure {
    pub(super) fn connection(reason: impl Into<String>) -> Self {
        Self { kind: FailureKind::Connection, reason: reason.into() }
    }

    pub(super) fn other(reason: impl Into<String>) -> Self {
        Self { kind: FailureKind::Other, reason: reason.into() }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        Self::Unavailable(failure.reason)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(state) = error.code() else {
            return if error.is_closed() {
                Self::connection("the connection to PostgreSQL was closed")
            } else {
                Self::connection(without_address(&error))
            };
        };
        let (kind, reason) = explain(state);
        let reason = match reason {
            Some(reason) => reason.to_owned(),
            // A message of the server may quote stored values, so only its code is shown.
            None => format!("PostgreSQL refused a statement (SQLSTATE {})", state.code()),
        };
        if kind == FailureKind::Other {
            tracing::debug!(sqlstate = state.code(), error = %error, "statement refused");
        }
        Self { kind, reason }
    }
}

/// What an error of the client library says, without the address that it may contain.
fn without_address(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    match source {
        // What the client library says of a server that a session may only read from.
        Some(io) if io.kind() == std::io::ErrorKind::PermissionDenied => READ_ONLY.to_owned(),
        Some(io) => match io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(tls) => format!("its certificate is not trusted ({tls}); sslrootcert names the file of its authority"),
            None => format!("PostgreSQL cannot be reached ({})", io.kind()),
        },
        // Such as that the server does not support TLS.
        None => error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
    }
}

const READ_ONLY: &str = "the server is read-only: it is a standby, or default_transaction_read_only is on";

fn explain(state: &SqlState) -> (FailureKind, Option<&'static str>) {
    use FailureKind::{Connection, Contention, Other};
    match state.code() {
        // What a server says that is going down, or coming up, or is a standby that was not promoted yet.
        "57P01" | "57P02" => (Connection, Some("PostgreSQL is shutting down")),
        "57P03" => (Connection, Some("PostgreSQL is starting up or shutting down")),
        "08000" | "08003" | "08006" | "08001" | "08004" => (Connection, Some("the connection was lost")),
        "25006" => (Connection, Some(READ_ONLY)),
        "53300" => (
            Connection,
            Some(
                "the server has no connection left: raise max_connections, or lower store_readers, or run fewer servers",
            ),
        ),
        "40001" | "40P01" | "55P03" => (Contention, Some("another transaction was in the way")),
        "57014" => (Contention, Some("a statement took longer than statement_timeout")),
        "53100" => (Other, Some("the disk of the server is full")),
        "53200" => (Other, Some("the server is out of memory")),
        "28P01" | "28000" => (Other, Some("the server refused the user name or the password")),
        "3D000" => (Other, Some("the database does not exist: create it, or correct its name in the address")),
        "42501" => (
            Other,
            Some(
                "the user lacks rights: it needs USAGE and CREATE on the schema, or CREATE on the database for the first start",
            ),
        ),
        "42P01" | "42883" | "3F000" => {
            (Other, Some("a table or function is missing: run `switchboard db migrate` with this build"))
        }
        _ => (Other, None),
    }
}

/// Why a stored row is not served.
pub(super) fn corrupt(what: impl fmt::Display) -> StoreError {
    StoreError::Corrupt(what.to_string())
}
