//! A wait beside busy work. Whoever waits for two things at once asks for both whenever one of them stirs; if one stirs
//! all the time and the other hardly ever, that is a lock taken for nothing at every step. [`aside`] asks only when told.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The same wait, but polled once at the beginning and then only after it was woken.
pub fn aside<F: Future + Unpin>(waited: F) -> Aside<F> {
    Aside { waited, bell: None }
}

/// See [`aside`].
pub struct Aside<F> {
    waited: F,
    bell: Option<Hung>,
}

/// A bell, and the two who have to do with it as this side knows them.
struct Hung {
    bell: Arc<Bell>,
    /// Rings it.
    ringer: Waker,
    /// The task that hears it.
    hearer: Waker,
}

struct Bell {
    rung: AtomicBool,
    hearer: Mutex<Waker>,
}

impl Hung {
    /// Rung already, so that the wait is polled for the first time.
    fn for_task(hearer: &Waker) -> Self {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), hearer: Mutex::new(hearer.clone()) });
        Self { ringer: bell.clone().into(), bell, hearer: hearer.clone() }
    }

    fn hear_as(&mut self, hearer: &Waker) {
        if !self.hearer.will_wake(hearer) {
            self.hearer.clone_from(hearer);
            self.bell.hearer.lock().unwrap_or_else(PoisonError::into_inner).clone_from(hearer);
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        let hearer = self.hearer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        hearer.wake();
    }
}

impl<F: Future + Unpin> Future for Aside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { waited, bell } = &mut *self;
        let hung = bell.get_or_insert_with(|| Hung::for_task(cx.waker()));
        // First, so that a bell that rings between here and the next line wakes the right task.
        hung.hear_as(cx.waker());
        if !hung.bell.rung.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        // Before the wait is asked, so that whoever rings meanwhile is heard the next time.
        hung.bell.rung.store(false, Ordering::SeqCst);
        Pin::new(waited).poll(&mut Context::from_waker(&hung.ringer))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::{Pin, pin};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use tokio_util::sync::CancellationToken;

    use super::aside;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Woken {
        fn poll<T>(self: &Arc<Self>, future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
            future.poll(&mut Context::from_waker(&Waker::from(self.clone())))
        }

        fn times(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn the_wait_is_asked_once_and_then_only_when_it_was_woken() {
        let (asked, token) = (AtomicUsize::new(0), CancellationToken::new());
        let mut cancelled = pin!(token.cancelled());
        let waited = poll_fn(|cx| {
            asked.fetch_add(1, Ordering::SeqCst);
            cancelled.as_mut().poll(cx)
        });
        let mut beside = aside(waited);
        let task = Arc::new(Woken::default());
        for _ in 0..5 {
            assert!(task.poll(Pin::new(&mut beside)).is_pending());
        }
        assert_eq!((asked.load(Ordering::SeqCst), task.times()), (1, 0));
        token.cancel();
        assert_eq!(task.times(), 1);
        assert!(task.poll(Pin::new(&mut beside)).is_ready());
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn what_has_come_already_is_found_at_once() {
        let token = CancellationToken::new();
        token.cancel();
        let cancelled = pin!(token.cancelled());
        let mut beside = aside(cancelled);
        assert!(Arc::new(Woken::default()).poll(Pin::new(&mut beside)).is_ready());
    }

    #[test]
    fn the_task_that_polled_last_is_the_one_that_is_woken() {
        let token = CancellationToken::new();
        let cancelled = pin!(token.cancelled());
        let mut beside = aside(cancelled);
        let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        assert!(first.poll(Pin::new(&mut beside)).is_pending());
        assert!(second.poll(Pin::new(&mut beside)).is_pending());
        token.cancel();
        assert_eq!((first.times(), second.times()), (0, 1));
        assert!(second.poll(Pin::new(&mut beside)).is_ready());
    }
}
