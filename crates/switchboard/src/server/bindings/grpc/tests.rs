//! Tables of what stands around the messages of gRPC.

use http::{HeaderMap, HeaderValue, header};
use tokio::time::Duration;

use super::status::escaped;
use super::stream::{framed, unframe};
use super::{parse_timeout, takes_protobuf};
use crate::server::exchange::headers::{ContentType, PresentHeaders};

#[test]
fn a_call_is_known_by_its_content_type() {
    for (kind, called, protobuf) in [
        ("application/grpc", true, true),
        ("Application/GRPC+Proto", true, true),
        ("application/grpc;charset=utf-8", true, true),
        ("application/grpc+json", true, false),
        ("application/grpc-web", false, false),
        ("application/grpc-web+proto", false, false),
        ("application/grpcx", false, false),
        ("application/json", false, false),
        ("", false, false),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        assert_eq!(PresentHeaders::of(&headers).content_type == ContentType::Grpc, called, "{kind}");
        assert!(!called || takes_protobuf(&headers) == protobuf, "{kind}");
    }
    assert_eq!(PresentHeaders::of(&HeaderMap::new()).content_type, ContentType::Absent);
}

#[test]
fn a_timeout_has_up_to_eight_digits_and_a_unit() {
    let ms = |ms| Some(Duration::from_millis(ms));
    for (text, expected) in [
        ("1H", ms(3_600_000)),
        ("2M", ms(120_000)),
        ("3S", ms(3_000)),
        ("40m", ms(40)),
        ("5000u", ms(5)),
        ("6000000n", ms(6)),
        ("00000001S", ms(1_000)),
        ("99999999H", ms(99_999_999 * 3_600_000)),
        ("000000001S", None),
        ("S", None),
        ("1", None),
        ("", None),
        ("-1S", None),
        ("+1S", None),
        ("1 S", None),
        ("1s", None),
        ("1é", None),
    ] {
        assert_eq!(parse_timeout(text), expected, "{text}");
    }
}

#[test]
fn a_message_survives_its_frame() {
    for message in [&b""[..], b"x", &[0xff; 70_000]] {
        let frame = framed(|out| out.extend_from_slice(message)).unwrap();
        assert_eq!(frame.len(), message.len() + 5);
        assert_eq!(unframe(frame).unwrap(), message);
    }
}

#[test]
fn all_but_printable_ascii_is_escaped() {
    assert_eq!(escaped("100 % ~ \n ä"), "100 %25 ~ %0A %C3%A4");
}
