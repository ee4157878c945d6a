//! Which tasks clients of selectools can still read.

use switchboard_core::model::TaskId;

use crate::server::compat_clients::Window;

/// An id of this server, made in this millisecond.
fn id(ms: u64, random: u64) -> TaskId {
    format!("{ms:012x}7000{random:016x}").into()
}

#[test]
fn the_oldest_is_pushed_out_first_even_within_a_millisecond() {
    let window = Window::default();
    let ids = [id(5, 9), id(5, 1), id(5, 4), id(6, 2)];
    let mut passed = Vec::new();
    for newest in &ids {
        window.push(newest, 2);
        passed.push(ids.iter().filter(|id| window.has_passed(id)).count());
    }
    assert_eq!(passed, [0, 0, 1, 2]);
    assert!(window.has_passed(&ids[0]) && window.has_passed(&ids[1]) && !window.has_passed(&ids[2]));
}

#[test]
fn what_was_begun_elsewhere_goes_with_its_age() {
    let window = Window::default();
    let (older, younger) = (id(1, 0), id(9, 0));
    window.push(&id(5, 0), 1);
    assert!(!window.has_passed(&older), "nothing has been pushed out yet");
    window.push(&id(6, 0), 1);
    assert!(window.has_passed(&older) && !window.has_passed(&younger));
    // With dashes it is the same id; an id that a client chose has no age.
    assert!(window.has_passed(&TaskId::from("00000000-0001-7000-0000-000000000000")));
    assert!(!window.has_passed(&TaskId::from("a-name-of-their-own")));
}

#[test]
fn a_task_that_comes_twice_takes_one_place() {
    let window = Window::default();
    for _ in 0..3 {
        window.push(&id(1, 0), 2);
    }
    window.push(&id(2, 0), 2);
    assert!(!window.has_passed(&id(1, 0)));
}
