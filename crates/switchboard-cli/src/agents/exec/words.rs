//! Splits a command line into words, the way a shell reads quotes and nothing else of what a shell does: no variables,
//! no patterns, no pipes. What looks like one of those is passed on as it stands.
//!
//! - blanks separate words, except inside quotes;
//! - `'…'` is taken literally;
//! - in `"…"` a backslash stands before `"` and `\`, and is literal before anything else;
//! - elsewhere a backslash takes the next character literally.

/// The words of a command line.
///
/// # Errors
/// When a quote is not closed or a backslash has nothing to take.
pub(crate) fn split_words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    // None between words. A word can be empty, if it was quoted.
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => quoted(&mut letters, word.get_or_insert_default())?,
            '"' => double_quoted(&mut letters, word.get_or_insert_default())?,
            '\\' => {
                let taken = letters.next().ok_or("ends in a backslash")?;
                word.get_or_insert_default().push(taken);
            }
            blank if blank.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
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
