//! The ways in which callers prove themselves, each with the settings of its server and the credentials of its load.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::process;

const SECRET: &str = "a-secret-of-the-benchmark-alone";
const TOKEN: &str = "a-token-of-the-benchmark-alone";
const ISSUER: &str = "https://login.example";
const AUDIENCE: &str = "agents";
/// The server remembers which tokens it saw once for fewer than these, so that almost none is known when its turn comes again.
const FRESH_TOKENS: usize = 40_000;
/// How many signatures are verified in a row, with the key in each of its forms.
const VERIFIED_AT_A_TIME: u32 = 100;
/// How long a token is good: longer than a run.
const LIFE: Duration = Duration::from_secs(86_400);

/// A way to prove oneself.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The arguments of its server, with paths below the folder.
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(&'static str, String)>,
    /// One after the other, and then again from the first. None sends no credential.
    pub(crate) credentials: Vec<String>,
    /// The most that it may add to a request.
    pub(crate) goal: Option<Goal>,
}

/// The most that a kind may add to a request.
pub(crate) enum Goal {
    /// So many µs of CPU.
    Us(f64),
    /// What it takes to verify the signature of one of its tokens.
    Signature(Box<Signatures>),
}

/// The signatures of tokens, to be verified without a server. There are as many as the requests have, because the processor learns to predict the
/// branches of one that is verified again and again, and is then faster than with a new one.
pub(crate) struct Signatures {
    /// The key as bytes, which are parsed each time.
    unparsed: UnparsedPublicKey<Vec<u8>>,
    /// The same key, parsed before, as the server does it.
    parsed: ParsedPublicKey,
    /// What was signed, and its signature.
    signed: Vec<(String, Vec<u8>)>,
    next: usize,
}

/// The CPU time that it takes to verify one signature.
#[derive(Clone, Copy)]
pub(crate) struct Verification {
    pub(crate) unparsed_us: f64,
    pub(crate) parsed_us: f64,
}

/// The kinds, in the order of the table.
pub(crate) const KINDS: [(&str, Proof); 9] = [
    ("none", Proof::None),
    ("none, repeats recognised", Proof::NoneRecognised),
    ("static token", Proof::Token),
    ("HS256, known", Proof::Known(Algorithm::Hs256)),
    ("HS256, fresh", Proof::Fresh(Algorithm::Hs256)),
    ("ES256, known", Proof::Known(Algorithm::Es256)),
    ("ES256, fresh", Proof::Fresh(Algorithm::Es256)),
    ("RS256, known", Proof::Known(Algorithm::Rs256)),
    ("RS256, fresh", Proof::Fresh(Algorithm::Rs256)),
];

/// What a request shows.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Proof {
    None,
    /// Nothing either; but repeats of a message are recognised by its id, as they are for callers who are known.
    NoneRecognised,
    Token,
    /// A JSON Web Token that the server has verified before.
    Known(Algorithm),
    /// One that it has not.
    Fresh(Algorithm),
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Algorithm {
    Hs256,
    Es256,
    Rs256,
}

/// What signs tokens.
pub(crate) enum Signer {
    Shared(Box<hmac::Key>),
    Ec(Box<EcdsaKeyPair>),
    Rsa(Box<RsaKeyPair>),
}

impl Signer {
    fn new(algorithm: Algorithm) -> Result<Self> {
        Ok(match algorithm {
            Algorithm::Hs256 => Self::Shared(Box::new(hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()))),
            Algorithm::Es256 => Self::Ec(Box::new(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)?)),
            Algorithm::Rs256 => Self::Rsa(Box::new(RsaKeyPair::generate(KeySize::Rsa2048)?)),
        })
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Shared(_) => "HS256",
            Self::Ec(_) => "ES256",
            Self::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, text: &str) -> Result<Vec<u8>> {
        let random = SystemRandom::new();
        let failed = |_| anyhow!("cannot sign");
        Ok(match self {
            Self::Shared(key) => hmac::sign(key, text.as_bytes()).as_ref().to_vec(),
            Self::Ec(pair) => pair.sign(&random, text.as_bytes()).map_err(failed)?.as_ref().to_vec(),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature).map_err(failed)?;
                signature
            }
        })
    }

    fn token(&self, number: usize) -> Result<String> {
        let expires = SystemTime::now().duration_since(UNIX_EPOCH)?.saturating_add(LIFE).as_secs();
        let header = format!(r#"{{"alg":"{}"}}"#, self.algorithm());
        let claims = match self {
            Self::Shared(_) => format!(r#"{{"sub":"alice@example.com","exp":{expires},"jti":"{number:08}"}}"#),
            Self::Ec(_) | Self::Rsa(_) => format!(
                r#"{{"iss":"{ISSUER}","aud":"{AUDIENCE}","sub":"alice","scope":"agents:use","exp":{expires},"jti":"{number:08}"}}"#
            ),
        };
        let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(self.sign(&text)?)))
    }

    /// The public key in PEM form.
    fn pem(&self) -> Result<String> {
        let der: PublicKeyX509Der<'_> = match self {
            Self::Shared(_) => bail!("a shared secret has no public key"),
            Self::Ec(pair) => pair.public_key().as_der()?,
            Self::Rsa(pair) => pair.public_key().as_der()?,
        };
        Ok(format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der.as_ref())))
    }
}

impl Signatures {
    fn new(signer: &Signer, tokens: &[String]) -> Result<Self> {
        let (algorithm, key): (&'static dyn VerificationAlgorithm, &[u8]) = match signer {
            Signer::Shared(_) => bail!("a shared secret has no public key"),
            Signer::Ec(pair) => (&ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref()),
            Signer::Rsa(pair) => (&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref()),
        };
        let signed = tokens.iter().map(|token| {
            let (signed, signature) = token.rsplit_once('.').context("a token has a signature")?;
            Ok((signed.to_owned(), URL_SAFE_NO_PAD.decode(signature)?))
        });
        let (unparsed, parsed) =
            (UnparsedPublicKey::new(algorithm, key.to_vec()), ParsedPublicKey::new(algorithm, key)?);
        Ok(Self { unparsed, parsed, signed: signed.collect::<Result<_>>()?, next: 0 })
    }

    /// Verifies the next ones, as many with the key as bytes as with the key that was parsed.
    pub(crate) fn verify_some(&mut self) -> Result<Verification> {
        let (mut unparsed, mut parsed) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..VERIFIED_AT_A_TIME {
            let (signed, signature) = &self.signed[self.next];
            unparsed += timed(|| self.unparsed.verify(signed.as_bytes(), signature).is_ok())?;
            let (signed, signature) = &self.signed[(self.next + 1) % self.signed.len()];
            parsed += timed(|| self.parsed.verify_sig(signed.as_bytes(), signature).is_ok())?;
            self.next = (self.next + 2) % self.signed.len();
        }
        let us = |in_all: Duration| in_all.as_secs_f64() * 1e6 / f64::from(VERIFIED_AT_A_TIME);
        Ok(Verification { unparsed_us: us(unparsed), parsed_us: us(parsed) })
    }
}

/// The CPU time that it takes to verify a good signature.
fn timed(verify: impl FnOnce() -> bool) -> Result<Duration> {
    let before = process::cpu_time_of_thread();
    ensure!(verify(), "a good signature was refused");
    Ok(process::cpu_time_of_thread().saturating_sub(before))
}

impl Kind {
    /// Makes the files that its server reads. `fresh` is how many fresh tokens there are, if not more than the server remembers.
    pub(crate) fn prepare((name, proof): (&'static str, Proof), folder: &Path, fresh: Option<usize>) -> Result<Self> {
        let mut kind = Self { name, arguments: Vec::new(), variables: Vec::new(), credentials: Vec::new(), goal: None };
        let (algorithm, count) = match proof {
            Proof::None => return Ok(kind),
            Proof::NoneRecognised => {
                let file = folder.join("switchboard.toml");
                std::fs::write(&file, "[[agent]]\nname = \"Demo\"\nidempotency = \"message-id\"\n")?;
                kind.arguments = vec!["--config".to_owned(), file.display().to_string()];
                return Ok(kind);
            }
            Proof::Token => {
                let file = folder.join("tokens.txt");
                std::fs::write(&file, format!("{TOKEN} alice\n"))?;
                kind.arguments = vec!["--tokens".to_owned(), file.display().to_string()];
                kind.credentials = vec![TOKEN.to_owned()];
                return Ok(kind);
            }
            Proof::Known(algorithm) => (algorithm, 1),
            Proof::Fresh(algorithm) => (algorithm, fresh.unwrap_or(FRESH_TOKENS)),
        };
        let signer = Signer::new(algorithm)?;
        if algorithm == Algorithm::Hs256 {
            kind.variables.push(("A2A_SECRET", SECRET.to_owned()));
        } else {
            let file = folder.join("keys.pem");
            std::fs::write(&file, signer.pem()?)?;
            kind.arguments = ["--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE].map(str::to_owned).to_vec();
            kind.variables.push(("SWITCHBOARD_JWT_KEYS_FILE", file.display().to_string()));
        }
        kind.credentials = (0..count).map(|number| signer.token(number)).collect::<Result<_>>()?;
        kind.goal = Some(match proof {
            Proof::Fresh(Algorithm::Hs256) => Goal::Us(4.0),
            Proof::Fresh(_) => Goal::Signature(Box::new(Signatures::new(&signer, &kind.credentials)?)),
            Proof::None | Proof::NoneRecognised | Proof::Token | Proof::Known(_) => Goal::Us(1.0),
        });
        Ok(kind)
    }
}
