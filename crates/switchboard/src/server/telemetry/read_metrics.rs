//! Reads the text that `/metrics` answers with, so that OTLP tells the same as Prometheus: there is one place where each thing is
//! counted, and one where it is named.

/// One metric with all its series.
#[derive(Debug)]
pub(super) struct Family<'a> {
    pub(super) name: &'a str,
    pub(super) help: &'a str,
    pub(super) points: Points,
}

#[derive(Debug)]
pub(super) enum Points {
    Gauge(Vec<Series<f64>>),
    Counter(Vec<Series<f64>>),
    Histogram(Vec<Series<Buckets>>),
}

/// Names and values.
pub(super) type Labels = Vec<(String, String)>;

/// A value with its labels.
#[derive(Debug)]
pub(super) struct Series<T> {
    pub(super) labels: Labels,
    pub(super) value: T,
}

/// The buckets of a histogram: upper bounds, and how many are at or below each of them.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    below: Vec<(f64, u64)>,
    pub(super) sum: f64,
    pub(super) count: u64,
}

impl Buckets {
    /// The bounds, without the last one, which is infinite.
    pub(super) fn bounds(&self) -> impl Iterator<Item = f64> {
        self.below.iter().map(|(bound, _)| *bound).filter(|bound| bound.is_finite())
    }

    /// How many are in each bucket alone; one more than there are bounds.
    pub(super) fn counts(&self) -> Vec<u64> {
        let below = self.below.iter().filter(|(bound, _)| bound.is_finite()).map(|(_, count)| *count);
        let mut before = 0;
        let mut counts: Vec<u64> =
            below.map(|count| count.saturating_sub(std::mem::replace(&mut before, count))).collect();
        counts.push(self.count.saturating_sub(before));
        counts
    }
}

/// The families of a page. Lines that cannot be read are left out.
pub(super) fn read(page: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    let mut help = ("", "");
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').unwrap_or((rest, ""));
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let points = match kind {
                "counter" => Points::Counter(Vec::new()),
                "histogram" => Points::Histogram(Vec::new()),
                _ => Points::Gauge(Vec::new()),
            };
            families.push(Family { name, help: if help.0 == name { help.1 } else { "" }, points });
        } else if let Some(family) = families.last_mut() {
            family.add(line);
        }
    }
    families.retain(|family| match &family.points {
        Points::Gauge(series) | Points::Counter(series) => !series.is_empty(),
        Points::Histogram(series) => !series.is_empty(),
    });
    families
}

impl Family<'_> {
    fn add(&mut self, line: &str) -> Option<()> {
        let (name, mut labels, value) = sample(line)?;
        match &mut self.points {
            Points::Gauge(series) | Points::Counter(series) if name == self.name => {
                series.push(Series { labels, value });
            }
            Points::Gauge(_) | Points::Counter(_) => return None,
            Points::Histogram(series) => {
                let part = name.strip_prefix(self.name)?;
                let bound = match labels.iter().position(|(name, _)| name == "le") {
                    Some(at) => number(&labels.remove(at).1)?,
                    None => f64::INFINITY,
                };
                if series.last().is_none_or(|last| last.labels != labels) {
                    series.push(Series { labels, value: Buckets::default() });
                }
                let buckets = &mut series.last_mut()?.value;
                match part {
                    "_bucket" => buckets.below.push((bound, value as u64)),
                    "_sum" => buckets.sum = value,
                    "_count" => buckets.count = value as u64,
                    _ => return None,
                }
            }
        }
        Some(())
    }
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        text => text.parse().ok(),
    }
}

/// The name, labels and value of a line.
fn sample(line: &str) -> Option<(&str, Labels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    Some((name, labels, number(rest.trim())?))
}

/// Reads labels up to the closing brace, and returns what follows it.
fn labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, value) = rest.trim_start_matches(',').split_once("=\"")?;
        let mut text = String::new();
        let mut characters = value.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => match characters.next()?.1 {
                    'n' => text.push('\n'),
                    other => text.push(other),
                },
                (_, other) => text.push(other),
            }
        };
        labels.push((name.to_owned(), text));
        rest = &value[end + 1..];
    }
}

#[cfg(test)]
#[path = "read_metrics_tests.rs"]
mod tests;
