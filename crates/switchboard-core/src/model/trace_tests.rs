//! The grammar of W3C Trace Context: what is a trace, what is not, and what is passed on.

use super::{TRACE_STATE_BYTES_MAX, TraceContext};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn state_of(lines: &[&str]) -> Option<String> {
    let context = TraceContext::parse(TRACE.as_bytes()).unwrap();
    context.with_state(lines.iter().map(|line| line.as_bytes())).trace_state().map(str::to_owned)
}

#[test]
fn a_trace_is_written_as_it_was_read() {
    let context = TraceContext::parse(TRACE.as_bytes()).unwrap();
    assert_eq!(context.trace_parent(), TRACE);
    assert_eq!(context.trace_id_text(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!((context.trace_id()[0], context.span_id()[7], context.is_sampled()), (0x0a, 0x31, true));
    assert!(!TraceContext::parse(TRACE.replace("-01", "-00").as_bytes()).unwrap().is_sampled());
}

#[test]
fn a_later_version_is_read_and_written_as_ours_without_what_it_adds() {
    let later = TRACE.replacen("00", "cc", 1);
    for text in [later.clone(), format!("{later}-what-comes-later"), later.replace("-01", "-ff")] {
        assert_eq!(TraceContext::parse(text.as_bytes()).unwrap().trace_parent(), TRACE, "{text}");
    }
}

#[test]
fn what_does_not_follow_the_grammar_is_no_trace() {
    let unfit = [
        String::new(),
        "00".to_owned(),
        TRACE.to_uppercase(),
        format!("{TRACE}-"),
        format!("{TRACE}-00"),
        format!(" {TRACE}"),
        TRACE.replacen("00", "ff", 1),
        TRACE.replacen("00", "0g", 1),
        TRACE.replacen("00", "cc", 1) + ".more",
        TRACE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
        TRACE.replace("b7ad6b7169203331", &"0".repeat(16)),
        TRACE.replace('-', "_"),
        TRACE.replace("-01", "-1"),
        "é".repeat(30),
    ];
    for text in unfit {
        assert_eq!(TraceContext::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn another_span_of_the_trace_keeps_its_state() {
    let context = TraceContext::parse(TRACE.as_bytes()).unwrap().with_state([b"a=1".as_slice()]);
    let below = context.under([1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(below.trace_parent(), "00-0af7651916cd43dd8448eb211c80319c-0102030405060708-01");
    assert_eq!(below.trace_state(), Some("a=1"));
}

#[test]
fn the_lines_of_a_state_are_one_list() {
    assert_eq!(state_of(&["congo=t61rcWkgMzE, rojo=00f0 67aa"]).unwrap(), "congo=t61rcWkgMzE,rojo=00f0 67aa");
    assert_eq!(state_of(&["a=1,\t ,b=2", "1t@sys=3"]).unwrap(), "a=1,b=2,1t@sys=3");
    assert_eq!(state_of(&[]), None);
    assert_eq!(state_of(&[" , "]), None);
}

#[test]
fn a_state_that_does_not_follow_the_grammar_is_left_out() {
    let many: Vec<String> = (0..33).map(|number| format!("k{number}=v")).collect();
    for unfit in ["a", "A=1", "=1", "a=", "a=1=2", "a=1,a=2", "a=é", "@s=1", "a@=1", "a@1=1", &many.join(",")] {
        assert_eq!(state_of(&[unfit]), None, "{unfit}");
    }
}

#[test]
fn a_state_that_is_too_long_loses_long_members_and_then_the_oldest() {
    let long = format!("long={}", "x".repeat(200));
    let short = |number: usize| format!("k{number}={}", "x".repeat(100));
    let members: Vec<String> = (0..6).map(short).collect();
    let kept = state_of(&[&format!("{long},{}", members.join(","))]).unwrap();
    assert_eq!(kept, members[..4].join(","));
    assert!(kept.len() <= TRACE_STATE_BYTES_MAX);
}

#[test]
fn fuzz_trace_context() {
    let corpus = [TRACE.as_bytes(), b"congo=t61rcWkgMzE,1t@sys=00f067aa0ba902b7"].map(<[u8]>::to_vec);
    switchboard_fuzz::run("trace context", &corpus, |bytes| {
        let context = TraceContext::parse(bytes);
        if let Some(read) = &context {
            // What is written is read as the same.
            assert_eq!(TraceContext::parse(read.trace_parent().as_bytes()).as_ref(), context.as_ref());
        }
        let with = TraceContext::parse(TRACE.as_bytes()).unwrap().with_state([bytes]);
        if let Some(state) = with.trace_state() {
            assert!(state.len() <= TRACE_STATE_BYTES_MAX);
            assert_eq!(TraceContext::of_texts(Some(TRACE), Some(state)), Some(with.clone()), "{state}");
        }
    });
}
