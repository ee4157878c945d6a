//! Every waiter of a batch is woken, also if another waiter or the runtime has gone.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::{Answer, Reply, WakeList, answer};

/// Counts how often its task was woken.
#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

type Waiter = (Answer<usize>, Arc<CountingWaker>);

fn poll((answer, bell): &mut Waiter) -> Poll<Option<usize>> {
    let waker = Waker::from(bell.clone());
    pin!(answer).poll(&mut Context::from_waker(&waker)).map(Result::ok)
}

/// This many waiters, each polled once and pending.
fn asleep(count: usize) -> (Vec<Reply<usize>>, Vec<Waiter>) {
    let (replies, answers): (Vec<_>, Vec<_>) = (0..count).map(|_| answer()).unzip();
    let mut waiters: Vec<Waiter> = answers.into_iter().map(|answer| (answer, Arc::default())).collect();
    assert!(waiters.iter_mut().all(|waiter| poll(waiter).is_pending()));
    (replies, waiters)
}

fn rung(waiters: &[Waiter]) -> Vec<usize> {
    waiters.iter().map(|(_, bell)| bell.0.load(Ordering::Relaxed)).collect()
}

fn leave_all(replies: Vec<Reply<usize>>) -> WakeList {
    let mut wake_list = WakeList::default();
    (1..).zip(replies).for_each(|(number, reply)| reply.leave(number, &mut wake_list));
    wake_list
}

#[test]
fn nobody_is_woken_before_every_answer_is_there() {
    let (replies, mut waiters) = asleep(3);
    let wake_list = leave_all(replies);
    assert_eq!(rung(&waiters), [0, 0, 0]);
    wake_list.wake();
    assert_eq!(rung(&waiters), [1, 1, 1]);
    assert_eq!(waiters.iter_mut().map(poll).collect::<Vec<_>>(), [1, 2, 3].map(|n| Poll::Ready(Some(n))));
}

#[tokio::test]
async fn the_waiters_of_a_runtime_are_woken_there() {
    let (replies, waiters) = asleep(3);
    leave_all(replies).wake();
    assert_eq!(rung(&waiters), [0, 0, 0], "only one task of the runtime was woken");
    tokio::task::yield_now().await;
    assert_eq!(rung(&waiters), [1, 1, 1]);
}

#[test]
fn the_waiters_of_a_runtime_that_ended_hear_all_the_same() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (replies, waiters) = runtime.block_on(async { asleep(3) });
    drop(runtime);
    leave_all(replies).wake();
    assert_eq!(rung(&waiters), [1, 1, 1]);
}

#[test]
fn a_waiter_that_has_gone_holds_up_nobody() {
    let (replies, mut waiters) = asleep(3);
    drop(waiters.remove(1));
    leave_all(replies).wake();
    assert_eq!(rung(&waiters), [1, 1]);
}

#[test]
fn an_answer_that_came_first_is_there_at_the_first_look() {
    let (reply, waiting) = answer();
    leave_all(vec![reply]).wake();
    assert_eq!(poll(&mut (waiting, Arc::default())), Poll::Ready(Some(1)));
}

#[test]
fn a_writer_that_stops_leaves_nobody_waiting() {
    let (replies, mut waiters) = asleep(2);
    drop(replies);
    assert_eq!(rung(&waiters), [1, 1]);
    assert_eq!(poll(&mut waiters[0]), Poll::Ready(None));
}
