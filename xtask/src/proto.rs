//! `proto`: the Rust code of the protobuf messages, from the files in `proto/`. The code is committed, so that only a
//! change of those files needs the generator. It holds a digest of the file it was made from, so that a test can check
//! without the generator that both still belong together.
#![cfg_attr(
    not(feature = "proto"),
    allow(dead_code, reason = "which messages are made is asked by the generator alone")
)]

#[cfg(feature = "proto")]
mod generate;

use std::path::PathBuf;

#[cfg(feature = "proto")]
pub(crate) use generate::{check, write};

use crate::folders::root;

/// One file of code: the file it is made from, where it goes, and which messages of that file are in it.
struct Package {
    file: &'static str,
    out: &'static str,
    messages: Messages,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Messages {
    /// Those of [`SHARED`].
    Shared,
    /// All others, with constants for the numbers of their fields, by which replies are written.
    Own,
    /// All, without such constants.
    All,
}

const PACKAGES: &[Package] = &[
    Package {
        file: "lf/a2a/v1/a2a.proto",
        out: "crates/switchboard-core/src/dialect/v1_0/proto/generated.rs",
        messages: Messages::Own,
    },
    Package {
        file: "a2a/v1/a2a.proto",
        out: "crates/switchboard-core/src/dialect/v0_3/proto/generated.rs",
        messages: Messages::Own,
    },
    Package {
        file: "lf/a2a/v1/a2a.proto",
        out: "crates/switchboard-core/src/dialect/protobuf/card/generated.rs",
        messages: Messages::Shared,
    },
    Package {
        file: "google/rpc/error.proto",
        out: "crates/switchboard-core/src/dialect/protobuf/generated.rs",
        messages: Messages::All,
    },
];

/// Messages of the card that both versions of A2A have, by their names in 1.0 and in 0.3. What 0.3 has of them has the same
/// numbers and types, so both are read and written by the code of 1.0; the generator refuses them if that is no longer so.
const SHARED: &[(&str, &str)] = &[
    ("AgentProvider", "AgentProvider"),
    ("AgentExtension", "AgentExtension"),
    ("AgentSkill", "AgentSkill"),
    ("AgentCardSignature", "AgentCardSignature"),
    ("StringList", "StringList"),
    ("SecurityRequirement", "Security"),
    ("SecurityScheme", "SecurityScheme"),
    ("APIKeySecurityScheme", "APIKeySecurityScheme"),
    ("HTTPAuthSecurityScheme", "HTTPAuthSecurityScheme"),
    ("OAuth2SecurityScheme", "OAuth2SecurityScheme"),
    ("OpenIdConnectSecurityScheme", "OpenIdConnectSecurityScheme"),
    ("MutualTlsSecurityScheme", "MutualTlsSecurityScheme"),
    ("OAuthFlows", "OAuthFlows"),
    ("AuthorizationCodeOAuthFlow", "AuthorizationCodeOAuthFlow"),
    ("ClientCredentialsOAuthFlow", "ClientCredentialsOAuthFlow"),
    ("ImplicitOAuthFlow", "ImplicitOAuthFlow"),
    ("PasswordOAuthFlow", "PasswordOAuthFlow"),
    ("DeviceCodeOAuthFlow", ""),
];

impl Package {
    /// What the code has above it.
    fn head(&self, source: &str, code: &str) -> String {
        let made = "Made by `cargo run -p xtask --features proto -- proto`, not by hand.";
        format!("//! {made}\n//! From `proto/{}`; mark of both: {:016x}.\n\n", self.file, mark(source, code))
    }

    /// Whether the code in the tree is marked as made from the file in the tree, and neither was changed since.
    #[cfg(test)]
    fn is_marked(&self) -> bool {
        let read =
            |path: PathBuf| std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let (source, found) = (read(self.source()), read(root().join(self.out)));
        let code = found.split_once("\n\n").map_or("", |(_, code)| code);
        found == self.head(&source, code) + code
    }

    fn source(&self) -> PathBuf {
        root().join("proto").join(self.file)
    }
}

/// FNV-1a: it has to notice a change, not an adversary.
fn mark(source: &str, code: &str) -> u64 {
    let bytes = source.bytes().chain(code.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |mark, byte| (mark ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::PACKAGES;

    #[test]
    fn the_code_belongs_to_the_files_it_was_made_from() {
        for package in PACKAGES {
            assert!(package.is_marked(), "{} and proto/{}: run the chore `proto`", package.out, package.file);
        }
    }

    #[cfg(feature = "proto")]
    #[test]
    fn the_files_make_the_code_that_is_committed() {
        assert!(super::check().unwrap());
    }
}
