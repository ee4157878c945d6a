//! Which misspellings are recognised.

use super::*;

#[test]
fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
    let known = ["listen", "public_url", "data", "memory", "tokens_file", "grace_s"];
    let meant = |name| similar(name, known.into_iter());
    assert_eq!(meant("lisen"), Some("listen"));
    assert_eq!(meant("lsiten"), Some("listen"));
    assert_eq!(meant("Listen"), Some("listen"));
    assert_eq!(meant("public-url"), Some("public_url"));
    assert_eq!(meant("token_file"), Some("tokens_file"));
    assert_eq!(meant("grace"), Some("grace_s"));
    assert_eq!(meant("porridge"), None);
    assert_eq!(meant(""), None);
    assert_eq!(meant("é"), None);
}

#[test]
fn a_swap_of_neighbours_is_one_edit() {
    assert_eq!(distance("ab", "ba"), 1);
    assert_eq!(distance("", "abc"), 3);
    assert_eq!(distance("kitten", "sitting"), 3);
}
