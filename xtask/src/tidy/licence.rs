//! Licences: each crate's SPDX expression must be satisfiable with what `rules::LICENCES` accepts.
//!
//! Read are names, `WITH`, `AND`, `OR`, parentheses, and the slash that old manifests write for `OR`.

use super::graph::Graph;
use super::{Findings, Location};

const RULE: &str = "licences";
const BECAUSE: &str = "the licence of each crate applies to everyone who ships the binary";

pub(super) fn check(accepted: &[(&str, &str, &[&str])], graph: &Graph) -> Findings {
    let mut findings = Findings::default();
    for package in &graph.packages {
        let accepts = |id: &str| {
            accepted.iter().any(|(it, _, only)| *it == id && (only.is_empty() || only.contains(&package.name.as_str())))
        };
        let wrong = match package.licence.as_deref().map(|expression| (expression, is_met(expression, &accepts))) {
            Some((_, Some(true))) => continue,
            Some((expression, Some(false))) => format!("is under {expression}"),
            Some((expression, None)) => format!("has a licence we cannot read: {expression:?}"),
            None => "names no licence".to_owned(),
        };
        findings.breach(Location::whole("Cargo.lock"), RULE, format!("{} {wrong}", package.label()), BECAUSE);
    }
    findings
}

/// Whether `expression` can be met with the licences that `accepts` says yes to; nothing if it does not parse.
pub(super) fn is_met(expression: &str, accepts: &dyn Fn(&str) -> bool) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, accepts };
    let met = reader.any()?;
    reader.words.is_empty().then_some(met)
}

struct Reader<'a> {
    words: &'a [&'a str],
    accepts: &'a dyn Fn(&str) -> bool,
}

impl Reader<'_> {
    fn take(&mut self, word: &str) -> bool {
        match self.words {
            [first, rest @ ..] if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }

    fn any(&mut self) -> Option<bool> {
        let mut met = self.all()?;
        while self.take("OR") {
            met |= self.all()?;
        }
        Some(met)
    }

    fn all(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.take("AND") {
            met &= self.one()?;
        }
        Some(met)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let met = self.any()?;
            return self.take(")").then_some(met);
        }
        let [id, rest @ ..] = self.words else { return None };
        if matches!(*id, ")" | "AND" | "OR" | "WITH") {
            return None;
        }
        self.words = rest;
        if !self.take("WITH") {
            return Some((self.accepts)(id));
        }
        let [exception, rest @ ..] = self.words else { return None };
        self.words = rest;
        Some((self.accepts)(&format!("{id} WITH {exception}")))
    }
}
