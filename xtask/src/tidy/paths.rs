//! Which modules does a Rust file name?
//!
//! Reads every path in the code, in `use` trees and out of them, and writes it from the root: `super::event` in
//! `lifecycle/decide.rs` becomes `crate::lifecycle::event`. Items under `#[cfg(test)]` are passed over.

use super::source;
use super::tree::File;

/// A path as the code names it, resolved, with the line it stands on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedItem {
    pub(super) line: usize,
    pub(super) path: Vec<String>,
}

impl NamedItem {
    /// Whether this names `module` or something in it.
    pub(super) fn is_within(&self, module: &str) -> bool {
        let mut mine = self.path.iter();
        module.split("::").all(|segment| mine.next().is_some_and(|it| it == segment))
    }

    pub(super) fn is_ours(&self) -> bool {
        self.path[0] == "crate" || self.path[0] == "switchboard" || self.path[0].starts_with("switchboard_")
    }

    pub(super) fn text(&self) -> String {
        self.path.join("::")
    }
}

/// The module a file holds: `crates/x/src/model/task.rs` is `crate::model::task`.
pub(super) fn module_of(path: &str) -> Vec<String> {
    let inside = path.split_once("/src/").map_or("", |(_, inside)| inside);
    let stem = inside.strip_suffix(".rs").unwrap_or(inside);
    let mut module = vec!["crate".to_owned()];
    if !stem.starts_with("bin/") {
        module.extend(stem.split('/').filter(|name| !name.is_empty()).map(str::to_owned));
    }
    if module.last().is_some_and(|name| matches!(name.as_str(), "mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

pub(super) fn named_by(file: &File) -> Vec<NamedItem> {
    let code = source::split(&file.text).code;
    let mut reader =
        Reader { tokens: tokens(&code), at: 0, module: module_of(&file.path), inline: Vec::new(), named: Vec::new() };
    reader.read();
    reader.named
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// `::`
    Into,
    Sign(char),
}

fn tokens(code: &str) -> Vec<(usize, Token<'_>)> {
    let mut tokens = Vec::new();
    for (line, text) in code.lines().enumerate() {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (token, length) = match rest {
                _ if rest.starts_with("r#") => (None, 2),
                _ if length > 0 => (Some(Token::Word(&rest[..length])), length),
                _ if rest.starts_with("::") => (Some(Token::Into), 2),
                _ => (Some(Token::Sign(first)), first.len_utf8()),
            };
            tokens.extend(token.map(|token| (line + 1, token)));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

struct Reader<'a> {
    tokens: Vec<(usize, Token<'a>)>,
    at: usize,
    module: Vec<String>,
    /// For each open brace: the inline module it opened, if it opened one.
    inline: Vec<Option<&'a str>>,
    named: Vec<NamedItem>,
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).map(|(_, token)| *token)
    }

    fn starts_with(&self, wanted: &[Token<'_>]) -> bool {
        (0..).zip(wanted).all(|(ahead, token)| self.peek(ahead) == Some(*token))
    }

    fn read(&mut self) {
        use Token::{Into, Sign, Word};
        const TEST: &[Token<'_>] = &[Sign('['), Word("cfg"), Sign('('), Word("test"), Sign(')'), Sign(']')];
        while let Some(token) = self.peek(0) {
            match (token, self.peek(1), self.peek(2)) {
                (Sign('#'), Some(Sign('!')), _) => {
                    self.at += 2;
                    if self.starts_with(TEST) {
                        return;
                    }
                }
                (Sign('#'), ..) => {
                    self.at += 1;
                    if self.starts_with(TEST) {
                        self.at += TEST.len();
                        self.skip_item();
                    }
                }
                (Word("mod"), Some(Word(name)), Some(Sign('{'))) => {
                    self.at += 3;
                    self.inline.push(Some(name));
                }
                (Sign('{'), ..) => {
                    self.at += 1;
                    self.inline.push(None);
                }
                (Sign('}'), ..) => {
                    self.at += 1;
                    self.inline.pop();
                }
                // `impl Trait + use<'a>` imports nothing.
                (Word("use"), next, _) if next != Some(Sign('<')) => {
                    self.at += 1;
                    self.tree(Vec::new());
                }
                (Word(_), Some(Into), _) => self.tree(Vec::new()),
                _ => self.at += 1,
            }
        }
    }

    /// Passes over one item: to its `;`, or to the end of its braces.
    fn skip_item(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.peek(0) {
            self.at += 1;
            match token {
                Token::Sign('{') => depth += 1,
                Token::Sign('}') => depth -= 1,
                Token::Sign(';') => {}
                _ => continue,
            }
            if depth <= 0 {
                return;
            }
        }
    }

    /// Reads one use tree (a plain path is one, too) below `above`, and notes every path it names.
    fn tree(&mut self, mut above: Vec<&'a str>) {
        if self.peek(0) == Some(Token::Into) {
            self.at += 1;
        }
        let line = self.tokens.get(self.at).map_or(0, |(line, _)| *line);
        while let Some(token) = self.peek(0) {
            match token {
                Token::Word(word) => {
                    self.at += 1;
                    above.push(word);
                    if self.peek(0) != Some(Token::Into) {
                        break;
                    }
                    self.at += 1;
                }
                Token::Sign('{') => {
                    self.at += 1;
                    while !matches!(self.peek(0), None | Some(Token::Sign('}'))) {
                        let before = self.at;
                        self.tree(above.clone());
                        // Past the comma, past `as name`, and always past something.
                        while !matches!(self.peek(0), None | Some(Token::Sign(',' | '}'))) {
                            self.at += 1;
                        }
                        if self.peek(0) == Some(Token::Sign(',')) || self.at == before {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                Token::Sign('*') => {
                    self.at += 1;
                    above.push("*");
                    break;
                }
                Token::Into | Token::Sign(_) => break,
            }
        }
        if let Some(path) = self.resolve(&above) {
            self.named.push(NamedItem { line, path });
        }
    }

    fn resolve(&self, path: &[&str]) -> Option<Vec<String>> {
        let mut resolved = Vec::new();
        let mut rest = path;
        if let ["self" | "super", ..] = path {
            resolved.clone_from(&self.module);
            resolved.extend(self.inline.iter().flatten().map(|&name| name.to_owned()));
        }
        while let ["super", below @ ..] = rest {
            resolved.pop();
            rest = below;
        }
        resolved.extend(rest.iter().filter(|&&name| name != "self").map(|&name| name.to_owned()));
        (!resolved.is_empty()).then_some(resolved)
    }
}
