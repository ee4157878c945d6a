//! "Did you mean": the known name that a misspelled one is closest to.

/// The name among `known` that differs least from `name`, if any is close enough to be what was meant.
pub(crate) fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let close = known.filter_map(|known| {
        let edits = distance(&name, &known.to_ascii_lowercase());
        // One wrong letter in three is a different word.
        (edits <= known.len().max(name.len()) / 3).then_some((edits, known))
    });
    close.min_by_key(|(edits, _)| *edits).map(|(_, known)| known)
}

/// How many letters have to be put in, left out, replaced or swapped with their neighbour (optimal string alignment).
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
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
#[path = "similar_tests.rs"]
mod tests;
