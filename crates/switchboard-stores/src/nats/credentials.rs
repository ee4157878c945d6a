//! Credentials of a user in the form that NATS hands out: a file with a token (JWT) and a seed, or with a seed alone. The seed gives the
//! key that signs what a server asks.

use std::fmt;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The first five bits of an encoded seed, and of a user in it.
const SEED: u8 = 18 << 3;
const USER: u8 = 20 << 3;
/// Two bytes of prefix, 32 of the seed, two of the checksum.
const SEED_BYTES: usize = 36;
const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A key, and the token that goes with it. Without one, the server knows the key itself.
pub(super) struct Credentials {
    pub(super) token: Option<String>,
    key: Ed25519KeyPair,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads the text of a file of credentials. What is wrong is told without quoting it.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let token = block(text, "JWT").map(str::to_owned);
        let alone = || Some(text.trim()).filter(|text| text.starts_with("SU"));
        let seed = block(text, "SEED").or_else(alone).ok_or("no USER NKEY SEED in it")?;
        let key = decode_seed(seed).ok_or("the seed in it is not one of a user")?;
        let key = Ed25519KeyPair::from_seed_unchecked(&key).map_err(|_| "the seed in it is not one of a user")?;
        Ok(Self { token, key })
    }

    /// The public key, as NATS writes it.
    pub(super) fn public_key(&self) -> String {
        named(USER, self.key.public_key().as_ref())
    }

    pub(super) fn sign(&self, nonce: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.key.sign(nonce.as_bytes()).as_ref())
    }
}

/// What stands between two lines of dashes, of which the first names it.
fn block<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::trim);
    lines.by_ref().find(|line| line.starts_with("-----BEGIN") && line.contains(name))?;
    lines.find(|line| !line.is_empty()).filter(|line| !line.starts_with('-'))
}

fn decode_seed(text: &str) -> Option<[u8; 32]> {
    let bytes = decode(text)?;
    let (&sum, rest) = bytes.split_last_chunk::<2>().map(|(rest, sum)| (sum, rest))?;
    let is_user = |rest: &[u8]| rest[0] & 0xF8 == SEED && (rest[0] & 7) << 5 | (rest[1] & 0xF8) >> 3 == USER;
    let fits = bytes.len() == SEED_BYTES && crc16(rest) == u16::from_le_bytes(sum) && is_user(rest);
    if fits { rest[2..].try_into().ok() } else { None }
}

/// Base 32 without padding.
fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0_u32, Vec::new());
    for letter in text.bytes() {
        let value = LETTERS.iter().position(|known| *known == letter)?;
        bits = bits << 5 | u32::try_from(value).ok()?;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xFF).ok()?);
        }
    }
    Some(bytes)
}

/// A public key, as NATS writes it: what it is for, the key and a checksum.
fn named(prefix: u8, key: &[u8]) -> String {
    let mut bytes = vec![prefix];
    bytes.extend_from_slice(key);
    let sum = crc16(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    encode(&bytes)
}

fn encode(bytes: &[u8]) -> String {
    let (mut bits, mut count, mut text) = (0_u32, 0_u32, String::new());
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        count += 8;
        while count >= 5 {
            count -= 5;
            text.push(char::from(LETTERS[(bits >> count & 31) as usize]));
        }
    }
    if count > 0 {
        text.push(char::from(LETTERS[(bits << (5 - count) & 31) as usize]));
    }
    text
}

/// CRC-16 with the polynomial 0x1021, as in XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| if sum & 0x8000 != 0 { sum << 1 ^ 0x1021 } else { sum << 1 })
    })
}

#[cfg(test)]
pub(super) mod tests {
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
    use base64::Engine as _;
    use serde_json::json;

    use super::{Credentials, SEED, URL_SAFE_NO_PAD, USER, crc16, encode, named};

    /// The seed of a user, as NATS writes it.
    pub(in super::super) fn seed(seed: [u8; 32]) -> String {
        let mut bytes = vec![SEED | USER >> 5, USER << 3];
        bytes.extend_from_slice(&seed);
        let sum = crc16(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        encode(&bytes)
    }

    /// The text of a file with this token and seed.
    pub(in super::super) fn file(token: &str, of: [u8; 32]) -> String {
        format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             ************************* IMPORTANT *************************\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            seed(of)
        )
    }

    /// The configuration of a server that trusts an operator, whose account has a user; and the file of that user.
    pub(in super::super) fn operated(user: [u8; 32]) -> (String, String) {
        let pair = |seed: u8| Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        let (operator, account) = (pair(1), pair(2));
        let operator_name = named(14 << 3, operator.public_key().as_ref());
        let account_name = named(0, account.public_key().as_ref());
        let user_name = Credentials::parse(&file("", user)).unwrap().public_key();
        let token = |by: &Ed25519KeyPair, issuer: &str, subject: &str, claims: serde_json::Value| {
            let head = URL_SAFE_NO_PAD.encode(json!({"typ": "JWT", "alg": "ed25519-nkey"}).to_string());
            let body = json!({"jti": subject, "iat": 1_750_000_000, "iss": issuer, "sub": subject, "name": "test", "nats": claims});
            let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(body.to_string()));
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(by.sign(signed.as_bytes()).as_ref()))
        };
        let of_operator = token(&operator, &operator_name, &operator_name, json!({"type": "operator", "version": 2}));
        let unlimited = json!({"subs": -1, "data": -1, "payload": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "wildcards": true});
        let claims = json!({"type": "account", "version": 2, "limits": unlimited});
        let of_account = token(&operator, &operator_name, &account_name, claims);
        let claims = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
        let of_user = token(&account, &account_name, &user_name, claims);
        let config =
            format!("operator: {of_operator}\nresolver: MEMORY\nresolver_preload: {{ {account_name}: {of_account} }}");
        (config, file(&of_user, user))
    }

    #[test]
    fn a_file_of_credentials_is_read_and_signs() {
        let credentials = Credentials::parse(&file("a.b.c", [7; 32])).unwrap();
        assert_eq!(credentials.token.as_deref(), Some("a.b.c"));
        assert!(credentials.public_key().starts_with('U') && credentials.public_key().len() == 56);
        assert_eq!(credentials.sign("nonce").len(), 86);
        assert!(!format!("{credentials:?}").contains("a.b.c"));
        let alone = Credentials::parse(&format!("{}\n", seed([7; 32]))).unwrap();
        assert_eq!((alone.token.as_deref(), alone.public_key()), (None, credentials.public_key()));
    }

    #[test]
    fn what_is_no_file_of_credentials_is_refused_without_being_quoted() {
        let good = file("a.b.c", [7; 32]);
        for (text, why) in [
            ("", "no USER NKEY SEED"),
            ("-----BEGIN NATS USER JWT-----\na.b.c\n------END NATS USER JWT------", "no USER NKEY SEED"),
            (&good.replace("\nSU", "\nSA"), "not one of a user"),
            (&good.replace("\nSU", "\nSUA"), "not one of a user"),
        ] {
            let refused = Credentials::parse(text).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn the_checksum_is_that_of_xmodem() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
    }

    #[test]
    fn fuzz_files_of_credentials() {
        switchboard_fuzz::run("files of credentials", &[file("a.b.c", [7; 32]).into_bytes()], |bytes| {
            let _ = Credentials::parse(&String::from_utf8_lossy(bytes));
        });
    }
}
