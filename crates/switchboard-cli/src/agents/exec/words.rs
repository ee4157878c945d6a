//! Splits a command line into words, the way a shell reads quotes and nothing else of what a shell does: no variables,
//! no patterns, no pipes. What looks like one of those is passed on as it stands.
//!
//! - blanks separate words, except inside quotes;
//! - `'…'` is taken literally;
//! - in `"…"` a backslash stands before `"` and `\`, and is literal before anything else;
//! - elsewhere a backslash takes the next character literally.

/// What only a shell makes anything of, as a word of its own.
const SHELL_WORDS: [&str; 10] = ["|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"];

/// The words of a command line.
///
/// # Errors
/// When a quote is not closed or a backslash has nothing to take.
pub(crate) fn split_words(line: &str) -> Result<Vec<String>, &'static str> {
    Ok(split(line)?.into_iter().map(|word| word.text).collect())
}

/// What to say of a command line that looks as if it was meant for a shell: it has one of the shell's own words, unquoted.
pub(crate) fn shell_doubt(line: &str) -> Option<String> {
    let words = split(line).unwrap_or_default();
    let meant = words.iter().find(|word| !word.is_quoted && SHELL_WORDS.contains(&word.text.as_str()))?;
    let word = &meant.text;
    Some(format!(
        "{line:?} is run without a shell, so that the program gets `{word}` as an argument; \
         if a shell is meant, add --exec-shell (shell = true), and if not, quote the `{word}`"
    ))
}

#[derive(Default)]
struct Word {
    text: String,
    /// Whether any of it was in quotes or behind a backslash.
    is_quoted: bool,
}

fn split(line: &str) -> Result<Vec<Word>, &'static str> {
    let mut words = Vec::new();
    // None between words. A word can be empty, if it was quoted.
    let mut word: Option<Word> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        word.is_quoted |= matches!(letter, '\'' | '"' | '\\');
        match letter {
            '\'' => quoted(&mut letters, &mut word.text)?,
            '"' => double_quoted(&mut letters, &mut word.text)?,
            '\\' => word.text.push(letters.next().ok_or("ends in a backslash")?),
            other => word.text.push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(letters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), &'static str> {
    loop {
        match letters.next().ok_or("has an opening ' without a closing one")? {
            '\'' => return Ok(()),
            letter => word.push(letter),
        }
    }
}

fn double_quoted(letters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), &'static str> {
    const UNCLOSED: &str = "has an opening \" without a closing one";
    loop {
        match letters.next().ok_or(UNCLOSED)? {
            '"' => return Ok(()),
            '\\' => match letters.next().ok_or(UNCLOSED)? {
                taken @ ('"' | '\\') => word.push(taken),
                other => word.extend(['\\', other]),
            },
            letter => word.push(letter),
        }
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
