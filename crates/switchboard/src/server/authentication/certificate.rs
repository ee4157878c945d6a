//! Certificates of TLS clients. The listener has verified that an authority which the operator trusts has signed the certificate, and
//! that the client has its key; here it is read whom it names and until when.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use switchboard_core::model::Timestamp;
use webpki::EndEntityCert;

use super::identity::Identity;
use crate::jwt::is_name;

/// Who vouches for the callers: the authority that the operator has named.
const ISSUER: &str = "x509";

/// The certificate that a client has shown and proven to be its own. The listener of this crate puts it into the extensions of each
/// request; an application with a TLS listener of its own does so itself, after it has verified the certificate.
///
/// The principal is `x509#uri:…` with the first URI among the alternative names, else `x509#dns:…` with the first DNS name, else
/// `x509#cn:…` with the common name.
///
/// ```
/// use switchboard::ClientCertificate;
///
/// assert!(ClientCertificate::from_der(b"no certificate").is_none());
/// ```
#[derive(Clone)]
pub struct ClientCertificate(Arc<Identity>);

impl ClientCertificate {
    /// Reads a certificate that was verified. None for one that names nobody.
    #[must_use]
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let certificate = CertificateDer::from(der);
        let certificate = EndEntityCert::try_from(&certificate).ok()?;
        let own = Fields::read(der)?;
        let name = (certificate.valid_uri_names().next().map(|name| format!("uri:{name}")))
            .or_else(|| certificate.valid_dns_names().next().map(|name| format!("dns:{}", name.to_ascii_lowercase())))
            .or_else(|| own.common_name.map(|name| format!("cn:{name}")))
            .filter(|name| is_name(name))?;
        Some(Self(Arc::new(Identity::issued(ISSUER, &name).expires(own.not_after))))
    }

    pub(super) fn identity(&self) -> &Arc<Identity> {
        &self.0
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientCertificate").field(&self.0.principal.as_str()).finish()
    }
}

/// What the TLS library does not tell of a certificate.
struct Fields {
    not_after: Timestamp,
    common_name: Option<String>,
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// UTF8String, PrintableString and IA5String, all of which are UTF-8.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

impl Fields {
    fn read(der: &[u8]) -> Option<Self> {
        let certificate = Der(der).value(SEQUENCE)?;
        let mut signed = Der(Der(certificate).value(SEQUENCE)?);
        if signed.0.first() == Some(&VERSION) {
            signed.next()?;
        }
        // The serial number, the algorithm and the issuer.
        for _ in 0..3 {
            signed.next()?;
        }
        let mut validity = Der(signed.value(SEQUENCE)?);
        validity.next()?;
        let not_after = time(validity.next()?)?;
        let mut names = Vec::new();
        let mut subject = Der(signed.value(SEQUENCE)?);
        while !subject.0.is_empty() {
            let mut attributes = Der(subject.value(SET)?);
            while !attributes.0.is_empty() {
                let mut attribute = Der(attributes.value(SEQUENCE)?);
                let ((_, kind), (tag, value)) = (attribute.next()?, attribute.next()?);
                if kind == COMMON_NAME && TEXTS.contains(&tag) {
                    names.push(std::str::from_utf8(value).ok()?.to_owned());
                }
            }
        }
        // Two of them could be read in two ways.
        let common_name = if names.len() == 1 { names.pop() } else { None };
        Some(Self { not_after, common_name })
    }
}

/// Bytes in the distinguished encoding of ASN.1 (X.690), of which only lengths of up to three bytes are read.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The tag and the content of what comes next.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The content of what comes next, if it has this tag.
    fn value(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.next().filter(|(tag, _)| *tag == wanted).map(|(_, content)| content)
    }
}

/// A time as certificates have it (RFC 5280, 4.1.2.5): in UTC, with seconds.
fn time((tag, text): (u8, &[u8])) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let century = if year.parse::<u8>().ok()? < 50 { "20" } else { "19" };
            (format!("{century}{year}"), rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.to_owned(), rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2).filter(|_| rest.len() == 10);
    let (month, day, hour, minute, second) = (part(0)?, part(2)?, part(4)?, part(6)?, part(8)?);
    Timestamp::parse_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use switchboard_core::model::Timestamp;

    use super::{ClientCertificate, GENERALIZED_TIME, UTC_TIME, time};

    fn der(pem: &str) -> Vec<u8> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
    }

    #[test]
    fn a_certificate_names_its_holder_by_uri_then_dns_then_common_name() {
        for (pem, expected) in [
            (
                include_str!("../../../../../tests/certificates/client.cert.pem"),
                "x509#uri:spiffe://acme.example/billing",
            ),
            (include_str!("../../../../../tests/certificates/first.cert.pem"), "x509#dns:localhost"),
            (include_str!("../../../../../tests/certificates/plain.cert.pem"), "x509#cn:A plain client"),
        ] {
            let identity = ClientCertificate::from_der(&der(pem)).unwrap().identity().clone();
            assert_eq!((identity.principal.as_str(), identity.issuer.as_deref()), (expected, Some("x509")));
            assert_eq!(identity.expires, Timestamp::parse_rfc3339("2124-01-01T00:00:00Z"));
        }
    }

    #[test]
    fn broken_certificates_name_nobody() {
        let whole = der(include_str!("../../../../../tests/certificates/plain.cert.pem"));
        for length in 0..whole.len() {
            assert!(ClientCertificate::from_der(&whole[..length]).is_none(), "{length} bytes");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            // It may still be a certificate; reading it must end.
            let _ = ClientCertificate::from_der(&changed);
        }
    }

    #[test]
    fn times_of_certificates_have_two_forms() {
        let at = |tag, text: &str| time((tag, text.as_bytes()));
        assert_eq!(at(UTC_TIME, "491231235959Z"), Timestamp::parse_rfc3339("2049-12-31T23:59:59Z"));
        assert_eq!(at(UTC_TIME, "500101000000Z"), Timestamp::parse_rfc3339("1950-01-01T00:00:00Z"));
        assert_eq!(at(GENERALIZED_TIME, "21240101000000Z"), Timestamp::parse_rfc3339("2124-01-01T00:00:00Z"));
        for (tag, text) in [
            (UTC_TIME, "491231235959"),
            (UTC_TIME, "4912312359Z"),
            (UTC_TIME, ""),
            (GENERALIZED_TIME, "21240101000000+0000Z"),
            (GENERALIZED_TIME, "21241301000000Z"),
            (0x04, "491231235959Z"),
        ] {
            assert_eq!(at(tag, text), None, "{text}");
        }
    }
}
