//! Which errors become an [`AgentError`], and what the client reads of them.

use super::AgentError;

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
