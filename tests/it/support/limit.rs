//! A limit for every test: one that hangs ends the run with its name, instead of blocking the whole run. Virtual time
//! does not help against a loop that never ends, nor against a thread that waits, so this is real time.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Longer than anything here may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Ends the whole run, with the name of the test, unless it is dropped in time.
pub(crate) struct Limit {
    _over: Sender<()>,
}

impl Limit {
    pub(crate) fn new() -> Self {
        // The long tests are asked for, and take as long as they were asked to.
        let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
        Self::of(if long { LIMIT * 12 } else { LIMIT })
    }

    #[expect(clippy::print_stderr, reason = "the process ends here, and what a test has captured ends with it")]
    fn of(limit: Duration) -> Self {
        let (over, is_over) = channel();
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        std::thread::spawn(move || {
            if is_over.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{test} has not ended within {limit:?}: it hangs");
                // A hanging test cannot be ended from outside, and the others would wait for it.
                std::process::exit(101);
            }
        });
        Self { _over: over }
    }
}

/// Fails if something takes longer than it may, in real time; for tests whose time is not paused.
pub(crate) async fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> T {
    let (over, is_over) = tokio::sync::oneshot::channel::<()>();
    let (done, is_done) = channel::<()>();
    std::thread::spawn(move || {
        if is_done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            drop(over);
        }
    });
    tokio::select! {
        biased;
        result = future => {
            drop(done);
            result
        }
        _ = is_over => panic!("{what} has not happened within {limit:?}"),
    }
}

#[tokio::test]
#[should_panic(expected = "never has not happened within 5ms")]
async fn what_never_happens_is_a_failure() {
    within(Duration::from_millis(5), "never", std::future::pending::<()>()).await;
}
