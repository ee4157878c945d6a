//! How much one request may hold. The size of the whole body is the binding's to bound; these limits are about what is
//! inside it.

use crate::model::JsonLimits;

#[derive(Clone, Copy, Debug)]
pub struct DecodeLimits {
    /// Parts of one message, as a count. Values over 10,000 act as 10,000.
    pub parts_max: usize,
    /// Entries of one list of strings (extensions, output modes, referenced tasks), as a count. Values over 10,000 act
    /// as 10,000.
    pub list_items_max: usize,
    /// Length of one id or tenant, in bytes of UTF-8.
    pub id_bytes_max: usize,
    /// Length of one single-line text (URL, token, credential, scheme, media type, extension URI), in bytes of UTF-8.
    /// The URL of a part is content and is not measured by this.
    pub line_bytes_max: usize,
    /// Bounds on each free-form value: metadata and data parts.
    pub json: JsonLimits,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self {
            parts_max: 1_000,
            list_items_max: 1_000,
            id_bytes_max: 256,
            line_bytes_max: 8_192,
            json: JsonLimits::default(),
        }
    }
}
