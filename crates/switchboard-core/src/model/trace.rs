//! The trace that a call is part of, as W3C Trace Context writes it: `traceparent` names the trace and the span that calls, and
//! `tracestate` holds what the tracing systems of others add. A `traceparent` that does not follow the grammar is no trace at all,
//! and a `tracestate` that does not follow it is left out.

use std::fmt;

/// What is kept of a `tracestate`. The recommendation asks for at least this much to be passed on.
pub const TRACE_STATE_BYTES_MAX: usize = 512;
/// The members that a `tracestate` may have.
const TRACE_STATE_MEMBERS_MAX: usize = 32;
/// Longer members are left out first if a `tracestate` is too long.
const TRACE_STATE_MEMBER_BYTES_KEPT: usize = 128;
/// The flag that says that the caller records its part of the trace.
const SAMPLED: u8 = 1;

/// A place in a trace: which trace, and which span of it whatever is called belongs under.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    flags: u8,
    state: Option<Box<str>>,
}

impl TraceContext {
    /// A place in a trace that begins here. None if an id is all zeros, which stands for none.
    #[must_use]
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], is_sampled: bool) -> Option<Self> {
        let has_ids = trace_id != [0; 16] && span_id != [0; 8];
        has_ids.then(|| Self { trace_id, span_id, flags: u8::from(is_sampled) * SAMPLED, state: None })
    }

    /// Reads the value of a `traceparent`. None if it does not follow the grammar.
    #[must_use]
    pub fn parse(trace_parent: &[u8]) -> Option<Self> {
        let (known, rest) = trace_parent.split_at_checked(55)?;
        let [version] = hex::<1>(&known[..2])?;
        // Later versions may add fields at the end; the one we know has none.
        let is_whole = match version {
            0xff => false,
            0 => rest.is_empty(),
            _ => rest.first().is_none_or(|next| *next == b'-'),
        };
        if !is_whole || known[2] != b'-' || known[35] != b'-' || known[52] != b'-' {
            return None;
        }
        let [flags] = hex::<1>(&known[53..])?;
        let context = Self::new(hex(&known[3..35])?, hex(&known[36..52])?, false)?;
        // Flags that this version does not know are not passed on.
        Some(Self { flags: flags & SAMPLED, ..context })
    }

    /// A trace as it was stored: the values of `traceparent` and `tracestate`.
    #[must_use]
    pub fn of_texts(trace_parent: Option<&str>, trace_state: Option<&str>) -> Option<Self> {
        Some(Self::parse(trace_parent?.as_bytes())?.with_state(trace_state.map(str::as_bytes)))
    }

    /// The same with the lines of a `tracestate`, if they follow the grammar.
    #[must_use]
    pub fn with_state<'a>(self, lines: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self { state: read_state(lines), ..self }
    }

    /// The same trace, under another span of it.
    #[must_use]
    pub fn under(&self, span_id: [u8; 8]) -> Self {
        Self { span_id, ..self.clone() }
    }

    /// The id of the trace.
    #[must_use]
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// The id of the span that what is called belongs under.
    #[must_use]
    pub fn span_id(&self) -> [u8; 8] {
        self.span_id
    }

    /// Whether the caller records its part of the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The id of the trace as 32 digits, as logs and tracing systems show it.
    #[must_use]
    pub fn trace_id_text(&self) -> String {
        digits(&self.trace_id)
    }

    /// The value of the header `traceparent`.
    #[must_use]
    pub fn trace_parent(&self) -> String {
        format!("00-{}-{}-{:02x}", digits(&self.trace_id), digits(&self.span_id), self.flags)
    }

    /// The value of the header `tracestate`, if the trace has one.
    #[must_use]
    pub fn trace_state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TraceContext").field(&self.trace_parent()).finish()
    }
}

fn digits(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let both = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    bytes.iter().flat_map(both).map(char::from).collect()
}

/// Reads lower-case digits; the recommendation allows no others.
fn hex<const BYTES: usize>(text: &[u8]) -> Option<[u8; BYTES]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; BYTES];
    if text.len() != 2 * BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// The members of all lines in order, without empty ones, within the limit.
fn read_state<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<Box<str>> {
    let mut members = Vec::new();
    for line in lines {
        for member in std::str::from_utf8(line).ok()?.split(',') {
            let member = member.trim_matches([' ', '\t']);
            if member.is_empty() {
                continue;
            }
            if !is_member(member) || members.len() == TRACE_STATE_MEMBERS_MAX {
                return None;
            }
            members.push(member);
        }
    }
    let keys = members.iter().map(|member| member.split('=').next());
    let mut seen = Vec::with_capacity(members.len());
    for key in keys {
        if seen.contains(&key) {
            return None;
        }
        seen.push(key);
    }
    let length = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>().saturating_sub(1);
    if length(&members) > TRACE_STATE_BYTES_MAX {
        members.retain(|member| member.len() <= TRACE_STATE_MEMBER_BYTES_KEPT);
    }
    // The newest member is the first.
    while length(&members) > TRACE_STATE_BYTES_MAX {
        members.pop();
    }
    (!members.is_empty()).then(|| members.join(",").into())
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    is_key(key) && is_value(value)
}

/// A key is a name, or a name within a system: `tenant@system`.
fn is_key(key: &str) -> bool {
    let rest = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
    let name = |text: &str, begins: fn(u8) -> bool, bytes_max: usize| {
        let mut bytes = text.bytes();
        text.len() <= bytes_max && bytes.next().is_some_and(begins) && bytes.all(rest)
    };
    let is_letter = |byte: u8| byte.is_ascii_lowercase();
    match key.split_once('@') {
        None => name(key, is_letter, 256),
        Some((tenant, system)) => {
            name(tenant, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), 241) && name(system, is_letter, 14)
        }
    }
}

fn is_value(value: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'=');
    (1..=256).contains(&value.len()) && value.bytes().all(is_allowed) && !value.ends_with(' ')
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
