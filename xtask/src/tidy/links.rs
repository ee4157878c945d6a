//! Relative links of the Markdown pages lead somewhere: to a file of the tree and, after `#`, to one of its headings.
//! Also: every decision page is listed in the index of decisions.

use std::collections::BTreeSet;

use super::rules::DECISIONS_INDEX;
use super::tree::{File, Tree};
use super::{Findings, Location};

pub(super) fn check(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    let mut reached = BTreeSet::new();
    for page in tree.files.iter().filter(|file| file.is_markdown()) {
        for Link { line, target } in links(&page.text) {
            let (path, heading) = target.split_once('#').map_or((target, None), |(path, it)| (path, Some(it)));
            let place = Location::line(&page.path, line);
            let because = "a page that leads nowhere is worse than no page";
            let Some(path) = join(&page.path, path) else {
                findings.breach(place, "links lead somewhere", format!("{target} leaves the tree"), because);
                continue;
            };
            if !path.is_empty() && !tree.paths.contains(&path) {
                findings.breach(place, "links lead somewhere", format!("{target} does not exist"), because);
            } else if let Some(heading) = heading
                && let Some(file) = tree.files.iter().find(|file| file.path == path && file.is_markdown())
                && !headings(file).contains(heading)
            {
                findings.breach(place, "links lead somewhere", format!("{target}: no such heading"), because);
            }
            reached.insert((page.path.as_str(), path));
        }
    }
    let decisions = DECISIONS_INDEX.rsplit_once('/').map_or("", |(folder, _)| folder);
    for page in tree.files.iter().filter(|file| file.is_in(decisions) && file.path != DECISIONS_INDEX) {
        if !reached.contains(&(DECISIONS_INDEX, page.path.clone())) {
            findings.breach(
                Location::whole(&page.path),
                "decisions are listed",
                format!("is not linked from {DECISIONS_INDEX}"),
                "a decision that is not listed is not found, and is discussed again",
            );
        }
    }
    findings
}

#[derive(Debug, PartialEq, Eq)]
struct Link<'a> {
    line: usize,
    target: &'a str,
}

/// The links of a page that stay inside the tree: `[text](target)`, `![text](target)` and `[name]: target`.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (line, prose) in prose(text) {
        let inline = prose.match_indices("](").map(|(at, _)| &prose[at + 2..]);
        let reference = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
        for rest in inline.chain(reference) {
            let target = match rest.trim_start().strip_prefix('<') {
                Some(rest) => rest.split('>').next(),
                None => rest.trim_start().split([')', ' ']).next(),
            };
            links.extend(target.filter(|target| is_local(target)).map(|target| Link { line, target }));
        }
    }
    links
}

/// Not the web, not mail, and not an item path that only rustdoc can follow.
fn is_local(target: &str) -> bool {
    !target.is_empty() && !target.contains(':')
}

/// The lines that are prose, with their numbers: fenced blocks and the code inside a line cut out.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => lines.extend(line.split('`').step_by(2).map(|piece| (number, piece))),
        }
    }
    lines
}

/// `target` as seen from the folder of `page`, or nothing if it climbs out of the tree.
fn join(page: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(page.to_owned());
    }
    let mut path: Vec<&str> = page.split('/').collect();
    path.pop();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => _ = path.pop()?,
            name => path.push(name),
        }
    }
    Some(path.join("/"))
}

/// The anchors of a page as the usual viewers form them: small letters, spaces as dashes, other signs dropped.
fn headings(page: &File) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut fenced = false;
    for line in page.text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let Some(title) = line.strip_prefix('#').filter(|_| !fenced) else { continue };
        let title = title.trim_start_matches('#').trim();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        let repeats = (1..).map(|n| format!("{anchor}-{n}")).find(|it| !anchors.contains(it));
        anchors.insert(if anchors.contains(&anchor) { repeats.unwrap_or_default() } else { anchor });
    }
    anchors
}
