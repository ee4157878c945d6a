//! The files of the workspace, read once. Checks see only this value, so a test can make one up.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

/// A text file. `path` is relative to the root and written with `/`.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(super) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// Whether the file tests the crate it lies in: `tests.rs`, `…_tests.rs`, or anything in a crate's folder `tests`.
    /// (The crate `tests` at the root is a crate like any other.)
    pub(super) fn is_test(&self) -> bool {
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        stem.split('/').skip(1).any(|name| name == "tests") || stem.ends_with("_tests")
    }

    /// Whether the file belongs to `module`: lies in that folder, or is the file of that name.
    pub(super) fn is_in(&self, module: &str) -> bool {
        self.path.strip_prefix(module).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
    }
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Everything that is text, by path.
    pub(super) files: Vec<File>,
    /// Every path there is, text or not, folders included.
    pub(super) paths: BTreeSet<String>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.enter(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn enter(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() && !is_foreign(&entry.path(), name) {
                self.paths.insert(path.clone());
                self.enter(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() && name != POINTER {
                self.paths.insert(path.clone());
                let bytes =
                    std::fs::read(entry.path()).with_context(|| format!("cannot read {}", entry.path().display()))?;
                if let Ok(text) = String::from_utf8(bytes) {
                    self.files.push(File { path, text });
                }
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            for (at, _) in path.match_indices('/') {
                tree.paths.insert(path[..at].to_owned());
            }
            tree.paths.insert((*path).to_owned());
            tree.files.push(File { path: (*path).to_owned(), text: (*text).to_owned() });
        }
        tree
    }
}

/// In a worktree, where git keeps the rest: a file with a path of this machine.
const POINTER: &str = ".git";

/// Folders that are not ours to judge: what git, cargo and a running server leave behind. Cargo marks its own.
fn is_foreign(folder: &Path, name: &str) -> bool {
    let hidden = name.starts_with('.') && ![".ci", ".agents"].contains(&name);
    let made = matches!(name, "target" | "reports" | "switchboard-data" | "__pycache__" | "node_modules");
    hidden || made || folder.join("CACHEDIR.TAG").exists()
}
