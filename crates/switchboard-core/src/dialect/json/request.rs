//! From the text of a request to the model: what cannot be read is refused, by field where there is one. [`Check`] collects
//! what is wrong while a request is converted, so that a sender gets several mistakes in one answer. Field names are
//! passed as format arguments and cost nothing while there is no mistake.

use std::fmt::Arguments;

use serde::Deserialize;

use super::read::{Int, LIST_ITEMS_KEPT, LazyMember, List, ParseFault, Raw, Text, excerpt, parse_object};
use crate::call::Request;
use crate::error::{ProtocolError, Violation};
use crate::model::{Json, JsonLimits, Timestamp};
use crate::nearest::nearest;

/// A request, and the tenant it names, which the server compares with what the credential allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub tenant: Option<String>,
    pub request: Request,
}

/// The params of a JSON-RPC call. The envelope was parsed as JSON already, so an error here is always about a field.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming the field.
#[inline]
pub fn read_params<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ProtocolError> {
    parse_object(text).map_err(|fault| wrong_field(fault, "params"))
}

/// The parameters of a call as they were written. Absent ones, and null, are an empty object.
#[must_use]
pub fn params_or_empty(params: Option<&str>) -> &str {
    params.filter(|params| *params != "null").unwrap_or("{}")
}

/// The body of an HTTP request.
///
/// # Errors
/// [`ProtocolError::ParseError`] when it is not JSON, else [`ProtocolError::InvalidParams`] naming the field.
#[inline]
pub fn read_body<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ProtocolError> {
    let text = std::str::from_utf8(body)
        .map_err(|error| ProtocolError::ParseError { reason: format!("not UTF-8: {error}") })?;
    parse_object(text).map_err(|fault| {
        if fault.is_syntax {
            ProtocolError::ParseError { reason: fault.with_position }
        } else {
            wrong_field(fault, "body")
        }
    })
}

#[cold]
fn wrong_field(fault: ParseFault, whole: &str) -> ProtocolError {
    ProtocolError::invalid(if fault.path.is_empty() { whole.to_owned() } else { fault.path }, fault.description)
}

/// The refusal of a method that a dialect does not have, with the one of `known` that was probably meant.
#[cold]
#[must_use]
pub fn unknown_method(method: &str, known: &[&'static str]) -> ProtocolError {
    let hint = nearest(method, known.iter().copied()).map(|meant| format!("did you mean {meant}?"));
    ProtocolError::MethodNotFound { method: excerpt(method, 64), hint }
}

/// Checks an id that stood in a path, by the rules for ids in a body.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming `field`.
pub fn check_id(field: &'static str, id: &str, limits: &DecodeLimits) -> Result<(), ProtocolError> {
    let mut check = Check::new(limits);
    if id.is_empty() {
        check.violation(format_args!("{field}"), "is required and must not be empty");
    }
    check.line(format_args!("{field}"), id, limits.id_bytes_max);
    check.finish(())
}

/// Enough to correct a request; more would only make the answer large.
const VIOLATIONS_MAX: usize = 20;

pub struct Check<'l> {
    pub limits: &'l DecodeLimits,
    violations: Vec<Violation>,
}

impl<'l> Check<'l> {
    pub fn new(limits: &'l DecodeLimits) -> Self {
        Self { limits, violations: Vec::new() }
    }

    /// Reads a member that only some spellings have.
    pub fn only<'a, T: Deserialize<'a>>(
        &mut self,
        field: Arguments<'_>,
        member: Option<LazyMember<'a, T>>,
    ) -> Option<T> {
        member?.read().map_err(|fault| self.violation(format_args!("{field}{}", fault.below), fault.description)).ok()
    }

    /// The converted value, or everything that was wrong on the way to it.
    pub fn finish<T>(self, value: T) -> Result<T, ProtocolError> {
        if self.violations.is_empty() {
            Ok(value)
        } else {
            Err(ProtocolError::InvalidParams { violations: self.violations })
        }
    }

    #[cold]
    pub fn violation(&mut self, field: Arguments<'_>, description: impl Into<String>) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation { field: field.to_string(), description: description.into() });
        }
    }

    /// An id or a tenant that may be left out; an empty one counts as left out.
    pub fn id<I: for<'i> From<&'i str>>(&mut self, field: Arguments<'_>, id: Option<Text<'_>>) -> Option<I> {
        let Text(id) = id?;
        if id.is_empty() {
            return None;
        }
        self.line(field, &id, self.limits.id_bytes_max);
        Some(I::from(&id))
    }

    pub fn required_id<I: for<'i> From<&'i str>>(&mut self, field: Arguments<'_>, id: Option<Text<'_>>) -> I {
        match id {
            Some(Text(id)) if !id.is_empty() => {
                self.line(field, &id, self.limits.id_bytes_max);
                I::from(&id)
            }
            Some(_) | None => {
                self.violation(field, "is required and must not be empty");
                I::from("")
            }
        }
    }

    /// A single-line text that may be left out; an empty one counts as left out.
    pub fn optional_line(&mut self, field: Arguments<'_>, text: Option<impl Into<String>>) -> Option<String> {
        let text: String = text.map(Into::into).filter(|text: &String| !text.is_empty())?;
        self.line(field, &text, self.limits.line_bytes_max);
        Some(text)
    }

    /// A text that is later compared, logged or put into a header, where a line break would do harm.
    pub fn line(&mut self, field: Arguments<'_>, text: &str, bytes_max: usize) {
        if text.len() > bytes_max {
            self.violation(field, format!("is {} bytes long; the limit is {bytes_max}", text.len()));
        } else if has_control(text) {
            self.violation(field, "must not contain control characters");
        }
    }

    pub fn lines<T: Into<String>>(&mut self, field: Arguments<'_>, list: Option<List<T>>) -> Vec<String> {
        let Some(list) = list else { return Vec::new() };
        let items = self.bounded(field, "entries", self.limits.list_items_max, list);
        let items: Vec<String> = items.into_iter().map(Into::into).collect();
        for (i, text) in items.iter().enumerate() {
            self.line(format_args!("{field}[{i}]"), text, self.limits.line_bytes_max);
        }
        items
    }

    pub fn ids<I: for<'i> From<&'i str>>(&mut self, field: Arguments<'_>, list: Option<List<Text<'_>>>) -> Vec<I> {
        let Some(list) = list else { return Vec::new() };
        let items = self.bounded(field, "entries", self.limits.list_items_max, list);
        items.into_iter().enumerate().map(|(i, id)| self.required_id(format_args!("{field}[{i}]"), Some(id))).collect()
    }

    /// The items of a list that is not too long; of one that is, none.
    pub fn bounded<T>(&mut self, field: Arguments<'_>, what: &str, max: usize, list: List<T>) -> Vec<T> {
        let max = max.min(LIST_ITEMS_KEPT);
        if list.total > max {
            self.violation(field, format!("has {} {what}; the limit is {max}", list.total));
            return Vec::new();
        }
        list.items
    }

    /// Free-form JSON of any kind.
    pub fn value<'r>(&mut self, field: Arguments<'_>, raw: impl Into<Raw<'r>>) -> Json {
        match Json::parse(&raw.into().0, self.limits.json) {
            Ok(json) => json,
            Err(error) => {
                let error = error.to_string();
                let reason = error.rfind(" at line ").map_or(error.as_str(), |at| &error[..at]);
                self.violation(field, format!("is not acceptable JSON: {}", excerpt(reason, 256)));
                Json::from_trusted("null")
            }
        }
    }

    /// Free-form JSON that must be an object.
    pub fn object<'r>(&mut self, field: Arguments<'_>, raw: Option<impl Into<Raw<'r>>>) -> Option<Json> {
        let raw = raw?.into();
        if !raw.0.starts_with('{') {
            self.violation(field, "must be an object");
            return None;
        }
        Some(self.value(field, raw))
    }

    pub fn history_length(&mut self, field: Arguments<'_>, sent: Option<Int>) -> Option<u32> {
        let Int(number) = sent?;
        u32::try_from(number).map_err(|_| self.violation(field, "must not be negative")).ok()
    }

    pub fn page_size(&mut self, sent: Option<Int>) -> Option<u32> {
        let Int(number) = sent?;
        match u32::try_from(number) {
            Ok(size @ 1..=100) => Some(size),
            Ok(_) | Err(_) => {
                self.violation(format_args!("pageSize"), "must be between 1 and 100");
                None
            }
        }
    }

    /// The page size of a list whose size has no presence: 0 is none.
    pub fn implicit_page_size(&mut self, sent: Option<Int>) -> Option<u32> {
        self.page_size(sent.filter(|size| size.0 != 0))
    }

    pub fn timestamp(&mut self, field: Arguments<'_>, sent: Option<Text<'_>>) -> Option<Timestamp> {
        let parsed = Timestamp::parse_rfc3339(&sent?.0);
        if parsed.is_none() {
            self.violation(field, "must be a timestamp such as 2026-02-03T10:00:00.000Z");
        }
        parsed
    }

    pub fn push_url(&mut self, field: Arguments<'_>, url: Option<impl Into<String>>) -> String {
        match url.map(Into::into) {
            Some(url) if !url.is_empty() => {
                self.line(field, &url, self.limits.line_bytes_max);
                if !is_absolute_http(&url) {
                    self.violation(field, "must be an absolute http or https URL");
                }
                url
            }
            Some(_) | None => {
                self.violation(field, "is required and must not be empty");
                String::new()
            }
        }
    }
}

fn has_control(text: &str) -> bool {
    // ASCII control characters are single bytes in UTF-8. The block U+0080 to U+009F is two: 0xC2 and the code itself.
    let bytes = text.as_bytes();
    bytes.iter().fold(false, |found, byte| found | byte.is_ascii_control())
        || (!text.is_ascii() && text.chars().any(char::is_control))
}

/// Whether a URL names a scheme we post to and a host. Where that host may be is for the outbound guard to say.
fn is_absolute_http(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    if !(scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")) {
        return false;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    !host.is_empty() && !host.starts_with(':') && !url.contains([' ', '\\'])
}

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
