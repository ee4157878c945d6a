//! Which errors become an [`AgentError`] and what the client reads of them; what is counted about ends.

use std::time::Duration;

use crate::runs::{AgentError, Histogram, MICROS_BOUNDS, RunEnd};

fn cause(error: AgentError) -> (Option<String>, Option<String>) {
    (error.told, error.cause.map(|cause| cause.to_string()))
}

#[test]
fn whatever_a_boxed_error_can_be_made_of_fails_a_run_and_is_not_told() {
    type Boxed = Box<dyn std::error::Error + Send + Sync>;
    fn by_question_mark(error: Boxed) -> Result<(), AgentError> {
        Err(error)?
    }
    let logged = |text: &str| (None, Some(text.to_owned()));
    assert_eq!(cause("no ink".into()), logged("no ink"));
    assert_eq!(cause(String::from("no ink").into()), logged("no ink"));
    assert_eq!(cause(std::io::Error::other("no ink").into()), logged("no ink"));
    assert_eq!(cause(by_question_mark("no ink".into()).unwrap_err()), logged("no ink"));
    assert_eq!(cause(AgentError::told("no ink")), (Some("no ink".to_owned()), None));
}

#[test]
fn every_way_to_end_has_a_place_and_a_word_of_its_own() {
    let mut words: Vec<_> = RunEnd::ALL.iter().map(|how| how.word()).collect();
    assert!(RunEnd::ALL.iter().enumerate().all(|(place, how)| *how as usize == place));
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), RunEnd::ALL.len());
}

#[test]
fn a_duration_is_counted_in_the_first_bucket_that_holds_it() {
    let histogram = Histogram::default();
    for micros in [0, 100, 101, 600_000_000, 600_000_001] {
        histogram.observe(Duration::from_micros(micros));
    }
    let mut expected = [0; MICROS_BOUNDS.len() + 1];
    (expected[0], expected[1], expected[16], expected[17]) = (2, 1, 1, 1);
    assert_eq!(histogram.buckets(), expected);
    assert!((histogram.seconds_sum() - 1_200.000_202).abs() < 1e-6, "{}", histogram.seconds_sum());
}
