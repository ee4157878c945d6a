//! The time on this machine, and how far the clock of the other side is from it.

use http::HeaderMap;
use switchboard_core::model::Timestamp;

use super::{Finding, fine, hint, wrong};

/// Tokens and signatures are commonly accepted for so long before and after their time.
const SKEW_MS_MAX: i64 = 60_000;

#[expect(clippy::disallowed_methods, reason = "whether the clock of this machine is right is the question")]
pub(super) fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}

/// Compares the `Date` of an answer with the time at which it came.
pub(super) fn compare(headers: &HeaderMap, now: Timestamp) -> Finding {
    let date = headers.get(http::header::DATE).and_then(|value| value.to_str().ok());
    let Some(theirs) = date.and_then(|date| httpdate::parse_http_date(date).ok()).map(Timestamp::from) else {
        return hint(
            "clock",
            "the answer has no Date header",
            "have the server or its proxy send Date, so that clocks can be compared",
        );
    };
    let skew_ms = theirs.as_ms() - now.as_ms();
    if skew_ms.abs() <= SKEW_MS_MAX {
        return fine("clock", "both clocks agree");
    }
    let (seconds, way) = (skew_ms.abs() / 1_000, if skew_ms > 0 { "ahead of" } else { "behind" });
    wrong(
        "clock",
        format!("the clock of the server is {seconds} s {way} this one"),
        "set both clocks by NTP: tokens and signatures are refused when they differ",
    )
}
