//! Text from other machines, made fit for a terminal and for the lines of our output.

/// Without control characters and the marks that change the direction of writing. Line breaks become blanks.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .filter(|letter| !is_hidden(*letter))
        .collect()
}

/// The same for a text of several lines, which stay apart.
pub(crate) fn clean_lines(text: &str) -> Vec<String> {
    text.replace("\r\n", "\n").split(['\n', '\r']).map(|line| clean(&line.replace('\t', "    "))).collect()
}

/// Letters that are not seen and change how others are shown.
fn is_hidden(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// JSON in which such letters are written as escapes, so that it can be printed and means the same. They occur only within
/// strings, where an escape is allowed.
pub(crate) fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\u{7f}'..='\u{9f}' => escaped.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter if is_hidden(letter) => escaped.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A word that a shell reads as one, whatever is in it.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{clean, clean_lines, escape_json, quote};

    #[test]
    fn control_sequences_and_direction_marks_are_taken_out() {
        assert_eq!(clean("\u{1b}[31mred\u{202e}\r\nx\u{9b}"), " [31mred  x ");
        assert_eq!(clean_lines("a\r\n\tb\rc\u{7}"), ["a", "    b", "c "]);
    }

    #[test]
    fn escaped_json_means_the_same() {
        let json = "{\"a\":\"\u{9b}\u{202e}\u{7f}ä\"}";
        let escaped = escape_json(json);
        assert!(
            escaped.is_char_boundary(0) && !escaped.contains('\u{9b}') && !escaped.contains('\u{202e}'),
            "{escaped}"
        );
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&escaped), read(json));
    }

    #[test]
    fn a_quoted_word_is_one_word_to_a_shell() {
        for word in ["plain-1", "", "two words", "it's", "$(rm -rf x)", "a\"b", "\\"] {
            let command = format!("printf %s {}", quote(word));
            let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
    }
}
