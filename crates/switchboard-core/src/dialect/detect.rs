//! Which dialect a request is in. It is decided once, when the request enters the server, in this order:
//!
//! 1. its mount, if that is a dialect's own (`/dialects/{name}/…`): nothing else is looked at;
//! 2. the version it names and the method or path it asks for, which must agree. A mix is refused with what to change,
//!    never read as the other version;
//! 3. without a version, the dialect that claims the path: by a setting of the agent, or because the path is its own;
//! 4. the shape of its message, where that is one system's own (`shape`);
//! 5. the default of the agent or the server, and then 0.3, as the spec has it.
//!
//! A method of 1.0 is decided by header and method alone; its body is not looked at. Where the bytes could be 0.3's as well
//! as a system's own, they are 0.3's: its answers say everything the others need.

use std::borrow::Cow;

use crate::error::ProtocolError;
use crate::model::{Dialect, Package};

use super::compat::shape::{Shape, shape};
use super::json::excerpt;

/// What is known about a request when its dialect is decided.
#[derive(Clone, Copy, Debug)]
pub struct Clues<'a> {
    /// The `A2A-Version` header; an empty one counts as absent.
    pub header: Option<&'a str>,
    /// The query parameter of that name, which counts where there is no header.
    pub query: Option<&'a str>,
    /// The dialect of a request that nothing else decides, if not 0.3.
    pub default: Option<Dialect>,
    pub mount: Mount,
    pub ingress: Ingress<'a>,
}

/// Which dialects may use the path of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mount {
    /// The path belongs to one dialect.
    Own(Dialect),
    /// Shared by all dialects.
    Shared {
        /// The compat dialect that gets requests which name no version.
        claim: Option<Dialect>,
    },
}

impl Mount {
    /// A path that no compat dialect claims.
    pub const FREE: Self = Self::Shared { claim: None };
}

/// The dialect that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected {
    pub dialect: Dialect,
    /// True if nothing in the request tells 0.3 from the compat dialects of its family: then a task is shown in a form
    /// that also suits the dialect it was begun in.
    pub is_open: bool,
}

/// The binding a request came over, with what it says about the dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingress<'a> {
    JsonRpc {
        method: &'a str,
        params: Option<&'a str>,
    },
    /// A path of HTTP+JSON as 1.0 has it.
    Http,
    /// A path of HTTP+JSON under `/v1`, as 0.3 has it.
    HttpV1,
    /// The gRPC service of this package.
    Grpc(Package),
}

/// Why no dialect was found, and the dialect to write the error in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectError {
    pub dialect: Dialect,
    pub error: ProtocolError,
}

/// The dialect whose rules apply to a request from the first check on. It is known from path and headers, before a byte
/// of the body is read.
#[must_use]
pub fn claimed(clues: &Clues<'_>) -> Option<Dialect> {
    match (clues.mount, clues.family()) {
        (Mount::Own(dialect), _) => Some(dialect),
        (Mount::Shared { claim }, NamedVersion::Absent) => claim,
        (Mount::Shared { .. }, NamedVersion::Known(_) | NamedVersion::Unknown(_)) => None,
    }
}

/// The dialect of a request.
///
/// # Errors
/// When its version is not served or not a version, or contradicts its method or path.
pub fn dialect(clues: &Clues<'_>) -> Result<Detected, DetectError> {
    if let Some(dialect) = claimed(clues) {
        return Ok(Detected { dialect, is_open: false });
    }
    let asked = clues.ingress.asks_for();
    let sure = |dialect| Ok(Detected { dialect, is_open: false });
    match (clues.family(), asked) {
        (NamedVersion::Unknown(version), _) => {
            let requested = excerpt(&version.replace(char::is_control, "?"), 32);
            let error = ProtocolError::VersionNotSupported {
                requested,
                supported: Dialect::VERSIONS.map(Cow::Borrowed).into(),
                fix: None,
            };
            Err(DetectError { dialect: clues.ingress.spelling(asked.unwrap_or(Family::V1_0)), error })
        }
        (NamedVersion::Known(Family::V1_0), Some(Family::V0)) => {
            Err(DetectError { dialect: Dialect::V1_0, error: clues.ingress.not_in_1_0() })
        }
        (NamedVersion::Known(Family::V0), Some(Family::V1_0)) => Err(without_version(clues.ingress)),
        (NamedVersion::Absent, Some(Family::V1_0)) if clues.default != Some(Dialect::V1_0) => {
            Err(without_version(clues.ingress))
        }
        (NamedVersion::Known(family), _) | (NamedVersion::Absent, Some(family @ Family::V1_0)) => {
            sure(clues.ingress.spelling(family))
        }
        (NamedVersion::Absent, Some(Family::V0)) => Ok(clues.old_verdict()),
        (NamedVersion::Absent, None) => sure(clues.default.unwrap_or(Dialect::V0_3)),
    }
}

/// The dialect to refuse a request in before its method is known: by its version and path alone.
#[must_use]
pub fn spelling(clues: &Clues<'_>) -> Dialect {
    if let Some(dialect) = claimed(clues) {
        return dialect;
    }
    let family = match clues.family() {
        NamedVersion::Known(family) => Some(family),
        NamedVersion::Absent | NamedVersion::Unknown(_) => clues.ingress.asks_for(),
    };
    family.map_or_else(|| clues.default.unwrap_or(Dialect::V0_3), |family| clues.ingress.spelling(family))
}

/// Versions that are spelled alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V1_0,
    /// 0.3 and 0.2.
    V0,
}

enum NamedVersion<'a> {
    Absent,
    Known(Family),
    Unknown(&'a str),
}

impl<'a> Clues<'a> {
    fn family(&self) -> NamedVersion<'a> {
        // The most common header is compared without parsing it.
        if self.header == Some("1.0") {
            return NamedVersion::Known(Family::V1_0);
        }
        let named = |text: Option<&'a str>| text.map(str::trim).filter(|text| !text.is_empty());
        let Some(version) = named(self.header).or(named(self.query)) else { return NamedVersion::Absent };
        match major_minor(version) {
            Some((1, 0)) => NamedVersion::Known(Family::V1_0),
            Some((0, 2 | 3)) => NamedVersion::Known(Family::V0),
            Some(_) | None => NamedVersion::Unknown(version),
        }
    }

    /// Which dialect of 0.3's family it is, where the request names no version and no compat dialect claims the path.
    fn old_verdict(&self) -> Detected {
        let default = self.default.filter(|default| default.is_compat_rpc());
        let family = self.ingress.spelling(Family::V0);
        let Ingress::JsonRpc { method, params } = self.ingress else {
            return Detected { dialect: family, is_open: false };
        };
        match shape(method, params) {
            Shape::Of(dialect) => Detected { dialect, is_open: false },
            Shape::Plain => Detected { dialect: family, is_open: false },
            Shape::Open => Detected { dialect: default.unwrap_or(family), is_open: true },
        }
    }
}

impl Ingress<'_> {
    /// The family whose method or path this is; none if it could be either's.
    fn asks_for(self) -> Option<Family> {
        match self {
            Self::JsonRpc { method, .. } if method.contains('/') => Some(Family::V0),
            Self::JsonRpc { method, .. } if method.starts_with(|first: char| first.is_ascii_uppercase()) => {
                Some(Family::V1_0)
            }
            Self::JsonRpc { .. } => None,
            Self::Http => Some(Family::V1_0),
            Self::HttpV1 => Some(Family::V0),
            Self::Grpc(Package::V1_0) => Some(Family::V1_0),
            Self::Grpc(Package::V0_3) => Some(Family::V0),
        }
    }

    fn spelling(self, family: Family) -> Dialect {
        match (family, self) {
            (Family::V1_0, _) => Dialect::V1_0,
            (Family::V0, Self::JsonRpc { .. }) => Dialect::V0_3,
            (Family::V0, Self::Http | Self::HttpV1 | Self::Grpc(_)) => Dialect::V0_3Rest,
        }
    }

    /// The refusal of a method or path of 0.3 in a request that names 1.0.
    fn not_in_1_0(self) -> ProtocolError {
        let (method, hint) = match self {
            Self::JsonRpc { method, .. } => {
                let own = METHODS.iter().find(|(old, _)| *old == method).map(|(_, new)| new);
                let hint = own.map(|own| {
                    format!("A2A 1.0 calls it {own}; to speak 0.3 instead, leave the header A2A-Version out")
                });
                (excerpt(method, 64), hint)
            }
            Self::Http | Self::HttpV1 => {
                let hint = "paths under /v1 are A2A 0.3's: in 1.0 they have no /v1; \
                            to speak 0.3 instead, leave the header A2A-Version out";
                ("/v1".to_owned(), Some(hint.to_owned()))
            }
            Self::Grpc(_) => {
                let hint = "the service of A2A 1.0 is lf.a2a.v1.A2AService; \
                            to speak 0.3 instead, leave the metadata a2a-version out";
                ("a2a.v1.A2AService".to_owned(), Some(hint.to_owned()))
            }
        };
        ProtocolError::MethodNotFound { method, hint }
    }
}

/// The refusal of a method or path of 1.0 in a request that does not name 1.0.
fn without_version(ingress: Ingress<'_>) -> DetectError {
    let fix = match ingress {
        Ingress::JsonRpc { method, .. } => {
            let old = METHODS.iter().find(|(_, new)| *new == method).map(|(old, _)| format!(": {old}"));
            format!(
                "{} is a method of A2A 1.0: send header A2A-Version: 1.0 \
                 (a request without it means 0.3, whose methods have other names{})",
                excerpt(method, 64),
                old.unwrap_or_default()
            )
        }
        Ingress::Http | Ingress::HttpV1 => "This path is of A2A 1.0: send header A2A-Version: 1.0 \
                                      (a request without it means 0.3, whose paths begin with /v1)"
            .to_owned(),
        Ingress::Grpc(_) => "This service is of A2A 1.0: send metadata a2a-version: 1.0 \
                          (a call without it means 0.3, whose service is a2a.v1.A2AService)"
            .to_owned(),
    };
    let error = ProtocolError::VersionNotSupported {
        requested: "0.3".to_owned(),
        supported: Dialect::VERSIONS.map(Cow::Borrowed).into(),
        fix: Some(fix),
    };
    DetectError { dialect: Dialect::V1_0, error }
}

/// The methods of 0.3 and what 1.0 calls them.
const METHODS: [(&str, &str); 10] = [
    ("message/send", "SendMessage"),
    ("message/stream", "SendStreamingMessage"),
    ("tasks/get", "GetTask"),
    ("tasks/cancel", "CancelTask"),
    ("tasks/resubscribe", "SubscribeToTask"),
    ("tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig"),
    ("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig"),
    ("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs"),
    ("tasks/pushNotificationConfig/delete", "DeleteTaskPushNotificationConfig"),
    ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"),
];

/// Reads `major.minor` and ignores a patch number, which never distinguishes two protocols. A leading `v` is tolerated.
fn major_minor(text: &str) -> Option<(u32, u32)> {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let number = |part: &str| -> Option<u32> {
        // Rust's parser takes a sign, a version does not.
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten()
    };
    let mut parts = text.split('.');
    let version = (number(parts.next()?)?, number(parts.next()?)?);
    if let Some(patch) = parts.next() {
        number(patch)?;
    }
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
#[path = "detect_tests.rs"]
mod tests;
