//! A file as 1.0 spells it (`raw` or `url`, beside it `mediaType` and `filename`), in a request of 0.3. Libraries that are
//! halfway between the versions send it, and it can mean only one thing.

use std::fmt::Arguments;

use bytes::Bytes;

use crate::dialect::json::{Check, Text, decode_base64};
use crate::model::{Part, PartContent};

/// The members of 1.0 in a part of 0.3.
#[derive(Default)]
pub(super) struct NewFile<'a> {
    pub(super) raw: Option<Text<'a>>,
    pub(super) url: Option<String>,
    pub(super) media_type: Option<String>,
    pub(super) filename: Option<String>,
}

impl NewFile<'_> {
    /// Whether it holds a file.
    pub(super) fn is_there(&self) -> bool {
        self.raw.is_some() || self.url.is_some()
    }

    /// Whether it holds two.
    pub(super) fn is_two(&self) -> bool {
        self.raw.is_some() && self.url.is_some()
    }

    /// File name and media type of a text or data, which only 1.0 has; none if the part is not in its spelling.
    pub(super) fn beside(self, check: &mut Check<'_>, i: usize, is_new: bool) -> (Option<String>, Option<String>) {
        if !is_new {
            return (None, None);
        }
        let media_type = check.optional_line(format_args!("message.parts[{i}].mediaType"), self.media_type);
        (self.filename.filter(|name| !name.is_empty()), media_type)
    }

    /// Reads the file that the part at `at` holds. A part with both `raw` and `url` is for the caller to refuse.
    pub(super) fn convert(self, check: &mut Check<'_>, at: Arguments<'_>) -> Part {
        let content = match (self.raw, self.url) {
            (Some(Text(encoded)), None) => {
                let bytes = decode_base64(&encoded);
                if bytes.is_none() {
                    check.violation(format_args!("{at}.raw"), "must be base64");
                }
                PartContent::Raw(Bytes::from(bytes.unwrap_or_default()))
            }
            (None, Some(url)) => {
                check.line(format_args!("{at}.url"), &url, usize::MAX);
                PartContent::Url(url)
            }
            // The caller has said what is wrong with it.
            (Some(_), Some(_)) | (None, None) => PartContent::Raw(Bytes::new()),
        };
        Part {
            content,
            metadata: None,
            filename: self.filename.filter(|name| !name.is_empty()),
            media_type: check.optional_line(format_args!("{at}.mediaType"), self.media_type),
        }
    }
}
