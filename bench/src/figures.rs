//! What the benchmarks say about their figures.

/// The one in the middle.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Whether a goal is met, for a table.
pub(crate) fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "**missed**" }
}
