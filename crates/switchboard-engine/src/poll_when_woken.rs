//! Polls a future only when it was woken. `select!` polls all of its branches whenever one of them is woken. If one
//! branch is woken often and another hardly ever, the second is polled, and its lock taken, each time without need.
//! [`poll_when_woken`] polls it only after it was woken itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The same future, but polled once at the beginning and then only after it was woken.
pub fn poll_when_woken<F: Future + Unpin>(future: F) -> PollWhenWoken<F> {
    PollWhenWoken { future, wakers: None }
}

/// See [`poll_when_woken`].
pub struct PollWhenWoken<F> {
    future: F,
    wakers: Option<Wakers>,
}

/// The flag, and the two wakers that set it or are woken by it.
struct Wakers {
    flag: Arc<Flag>,
    /// Given to the future: sets the flag and wakes the task.
    own: Waker,
    /// Wakes the task that polls.
    task: Waker,
}

/// Whether the future was woken since it was polled last.
struct Flag {
    is_woken: AtomicBool,
    task: Mutex<Waker>,
}

impl Wakers {
    /// The flag is set from the beginning, so that the future is polled a first time.
    fn new(task: &Waker) -> Self {
        let flag = Arc::new(Flag { is_woken: AtomicBool::new(true), task: Mutex::new(task.clone()) });
        Self { own: flag.clone().into(), flag, task: task.clone() }
    }

    fn set_task(&mut self, task: &Waker) {
        if !self.task.will_wake(task) {
            self.task.clone_from(task);
            self.flag.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(task);
        }
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        task.wake();
    }
}

impl<F: Future + Unpin> Future for PollWhenWoken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, wakers } = &mut *self;
        let wakers = wakers.get_or_insert_with(|| Wakers::new(cx.waker()));
        // The waker is stored first, so that a wake-up between here and the next line reaches the right task.
        wakers.set_task(cx.waker());
        if !wakers.flag.is_woken.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        // The flag is cleared before the future is polled, so that a wake-up during the poll is noticed.
        wakers.flag.is_woken.store(false, Ordering::SeqCst);
        Pin::new(future).poll(&mut Context::from_waker(&wakers.own))
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

    use super::poll_when_woken;

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
    fn the_future_is_polled_once_and_then_only_after_it_was_woken() {
        let (polled, token) = (AtomicUsize::new(0), CancellationToken::new());
        let mut cancelled = pin!(token.cancelled());
        let future = poll_fn(|cx| {
            polled.fetch_add(1, Ordering::SeqCst);
            cancelled.as_mut().poll(cx)
        });
        let mut beside = poll_when_woken(future);
        let task = Arc::new(Woken::default());
        for _ in 0..5 {
            assert!(task.poll(Pin::new(&mut beside)).is_pending());
        }
        assert_eq!((polled.load(Ordering::SeqCst), task.times()), (1, 0));
        token.cancel();
        assert_eq!(task.times(), 1);
        assert!(task.poll(Pin::new(&mut beside)).is_ready());
        assert_eq!(polled.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn what_is_ready_already_is_found_at_once() {
        let token = CancellationToken::new();
        token.cancel();
        let cancelled = pin!(token.cancelled());
        let mut beside = poll_when_woken(cancelled);
        assert!(Arc::new(Woken::default()).poll(Pin::new(&mut beside)).is_ready());
    }

    #[test]
    fn the_task_that_polled_last_is_the_one_that_is_woken() {
        let token = CancellationToken::new();
        let cancelled = pin!(token.cancelled());
        let mut beside = poll_when_woken(cancelled);
        let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        assert!(first.poll(Pin::new(&mut beside)).is_pending());
        assert!(second.poll(Pin::new(&mut beside)).is_pending());
        token.cancel();
        assert_eq!((first.times(), second.times()), (0, 1));
        assert!(second.poll(Pin::new(&mut beside)).is_ready());
    }
}
