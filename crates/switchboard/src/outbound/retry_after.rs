//! `Retry-After` (RFC 9110, 10.2.3), as a pause: a number of seconds, or a date. A date is compared with the `Date` of the
//! same answer, so that it does not matter how far the other clock is from ours.

use http::HeaderMap;
use http::header::{DATE, HeaderName, RETRY_AFTER};

/// How long to wait, in milliseconds; none if nothing was said, or nothing that can be read.
pub(crate) fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let said = text(headers, RETRY_AFTER)?;
    if said.bytes().all(|byte| byte.is_ascii_digit()) && !said.is_empty() {
        // More digits than fit are a long time all the same.
        return Some(said.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1_000));
    }
    let then = httpdate::parse_http_date(said).ok()?;
    let sent = httpdate::parse_http_date(text(headers, DATE)?).ok()?;
    let pause = then.duration_since(sent).unwrap_or_default();
    Some(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::retry_after_ms;

    const NOON: &str = "Sun, 06 Nov 1994 12:00:00 GMT";

    fn said(retry_after: &str, date: Option<&str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_str(retry_after).unwrap());
        if let Some(date) = date {
            headers.insert("date", HeaderValue::from_str(date).unwrap());
        }
        retry_after_ms(&headers)
    }

    #[test]
    fn it_is_a_number_of_seconds_or_a_date() {
        assert_eq!(said("0", None), Some(0));
        assert_eq!(said(" 120 ", None), Some(120_000));
        assert_eq!(said("Sun, 06 Nov 1994 12:02:00 GMT", Some(NOON)), Some(120_000));
        assert_eq!(said("Sun, 06 Nov 1994 11:00:00 GMT", Some(NOON)), Some(0), "a date that has passed");
        assert_eq!(said(&"9".repeat(50), None), Some(u64::MAX));
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        assert_eq!(retry_after_ms(&HeaderMap::new()), None);
        for odd in ["", "soon", "-5", "1.5", "+3", "Sun, 99 Nov 1994 12:02:00 GMT"] {
            assert_eq!(said(odd, Some(NOON)), None, "{odd}");
        }
        assert_eq!(said(NOON, None), None, "a date, and none to compare it with");
        assert_eq!(said(NOON, Some("today")), None);
    }
}
