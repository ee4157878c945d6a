//! "Did you mean": finds the known name that a mistyped one was probably meant to be.

/// A longer name is no slip of a finger, and comparing it would cost more than the hint is worth.
const NAME_CHARS_MAX: usize = 64;

/// The known name that is nearest to `given`, if one is near enough: at most a quarter of its letters, and never more than
/// three, are missing, added or different. Upper and lower case count as the same letter. Of several the first one counts.
#[must_use]
pub fn nearest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let given = letters(given)?;
    let edits_max = (given.len() / 4).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let Some(letters) = letters(name) else { continue };
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

/// The Levenshtein distance of two names.
fn edits_between(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, expected) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != expected);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

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
    fn what_is_like_nothing_finds_nothing() {
        let (long, wide) = ("x".repeat(1 << 20), "ü".repeat(65));
        for given in ["", "foo", "tasks/send", "message", "GetWeather", &long, &wide] {
            assert_eq!(nearest(given, KNOWN), None, "{given:.20}");
        }
        assert_eq!(nearest("echo", []), None);
    }
}
