//! SHA-256 by aws-lc, which has fast code for processors with instructions for it and for those without.

use aws_lc_rs::digest::{SHA256, digest};

/// The digest of these bytes. What has several parts is written into one buffer first.
#[must_use]
pub fn sha256(bytes: impl AsRef<[u8]>) -> [u8; 32] {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest(&SHA256, bytes.as_ref()).as_ref());
    sum
}
