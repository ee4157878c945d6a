//! "Did you mean": finds the known name that a mistyped one was probably meant to be.

/// A longer name is no slip of a finger, and comparing it would cost more than the hint is worth.
const NAME_CHARS_MAX: usize = 64;

/// The known name that is nearest to `given`, if one is near enough: at most about a quarter of the letters, and never more
/// than three, are missing, added, different or swapped with their neighbour. Upper and lower case count as the same letter.
/// Of several the first one counts.
#[must_use]
pub fn nearest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let given = letters(given)?;
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let Some(letters) = letters(name) else { continue };
        let edits_max = ((given.len().max(letters.len()) + 1) / 4).clamp(1, 3);
        if letters.len().abs_diff(given.len()) > edits_max {
            continue;
        }
        let edits = edits_between(&given, &letters);
        if edits <= edits_max && best.is_none_or(|(fewest, _)| edits < fewest) {
            best = Some((edits, name));
        }
    }
    best.map(|(_, name)| name)
}

/// The letters of a name in lower case; none for a name that is empty or too long to compare.
fn letters(name: &str) -> Option<Vec<char>> {
    // A letter is one to four bytes long, so a longer text need not be counted.
    if name.is_empty() || name.len() > NAME_CHARS_MAX * 4 {
        return None;
    }
    let letters: Vec<char> = name.chars().map(|letter| letter.to_ascii_lowercase()).collect();
    (letters.len() <= NAME_CHARS_MAX).then_some(letters)
}

/// How many letters have to be put in, left out, replaced or swapped with their neighbour (optimal string alignment).
fn edits_between(one: &[char], other: &[char]) -> usize {
    // Rows of the usual table; the two before the current one are kept.
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for row in 1..=one.len() {
        let mut current = vec![row];
        for column in 1..=other.len() {
            let replaced = last[column - 1] + usize::from(one[row - 1] != other[column - 1]);
            let mut edits = replaced.min(last[column] + 1).min(current[column - 1] + 1);
            let is_swap =
                row > 1 && column > 1 && one[row - 1] == other[column - 2] && one[row - 2] == other[column - 1];
            if is_swap {
                edits = edits.min(before_last[column - 2] + 1);
            }
            current.push(edits);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::{edits_between, nearest};

    const KNOWN: [&str; 5] = ["message/send", "message/stream", "tasks/get", "tasks/cancel", "SendMessage"];

    #[test]
    fn a_slip_finds_the_name_that_was_meant() {
        for (given, expected) in [
            ("mesage/send", "message/send"),
            ("message.send", "message/send"),
            ("messages/send", "message/send"),
            ("sendMessage", "SendMessage"),
            ("task/get", "tasks/get"),
            ("tasks/cancle", "tasks/cancel"),
        ] {
            assert_eq!(nearest(given, KNOWN), Some(expected), "{given}");
        }
    }

    #[test]
    fn a_misspelled_setting_finds_the_one_that_was_meant() {
        let known = ["listen", "public_url", "data", "memory", "tokens_file", "grace_s"];
        for (given, expected) in [
            ("lisen", Some("listen")),
            ("lsiten", Some("listen")),
            ("Listen", Some("listen")),
            ("public-url", Some("public_url")),
            ("token_file", Some("tokens_file")),
            ("grace", Some("grace_s")),
            ("porridge", None),
            ("é", None),
        ] {
            assert_eq!(nearest(given, known), expected, "{given}");
        }
    }

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        let edits = |one: &str, other: &str| {
            edits_between(&one.chars().collect::<Vec<_>>(), &other.chars().collect::<Vec<_>>())
        };
        assert_eq!((edits("ab", "ba"), edits("", "abc"), edits("kitten", "sitting")), (1, 3, 3));
    }

    #[test]
    fn what_is_like_nothing_finds_nothing() {
        let (long, wide) = ("x".repeat(1 << 20), "ü".repeat(65));
        for given in ["", "foo", "tasks/send", "message", "GetWeather", &long, &wide] {
            assert_eq!(nearest(given, KNOWN), None, "{given:.20}");
        }
        assert_eq!(nearest("echo", []), None);
    }
}
