//! A copy of a published kit, known by the hash of all its files.
//!
//! In: a repository that has the commit; whatever else is checked out or changed there is not looked at. Out: a folder with
//! the files of the commit, corrected if asked for. A kit whose files are not the ones that were pinned is refused, because
//! its results could not be repeated.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::corrections::{Correction, sha256};

/// A commit of the kit that results are published for.
pub(super) struct PublishedKit {
    pub(super) commit: &'static str,
    /// What `tree_hash` says of the commit's files.
    pub(super) tree: &'static str,
    /// What it says of them when they are corrected.
    pub(super) corrected_tree: &'static str,
    pub(super) corrections: &'static [Correction],
}

/// A kit that can be run.
pub(super) struct Kit {
    pub(super) folder: PathBuf,
    pub(super) commit: &'static str,
    /// The hash of its files.
    pub(super) tree: &'static str,
    /// None if it is as published.
    pub(super) corrections: &'static [Correction],
}

impl Kit {
    /// Puts the kit into a folder inside `parent`, in place of what an earlier run left there.
    pub(super) fn prepare(
        published: &'static PublishedKit,
        repository: &Path,
        corrected: bool,
        parent: &Path,
    ) -> Result<Kit, String> {
        let (tree, corrections) = if corrected {
            (published.corrected_tree, published.corrections)
        } else {
            (published.tree, &published.corrections[..0])
        };
        let mut kit = Kit { folder: PathBuf::new(), commit: published.commit, tree, corrections };
        kit.folder = parent.join(kit.name()).join("kit");
        copy(repository, published.commit, &kit.folder)?;
        for correction in corrections {
            let path = kit.folder.join(correction.file);
            let corrected = correction.apply(read(&path)?.as_deref())?;
            std::fs::write(&path, corrected).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let found = tree_hash(&kit.folder)?;
        if found == tree {
            return Ok(kit);
        }
        Err(format!("the files of {} have the hash {found}, expected {tree}", kit.name()))
    }

    pub(super) fn is_corrected(&self) -> bool {
        !self.corrections.is_empty()
    }

    pub(super) fn name(&self) -> String {
        let commit = self.commit.get(..7).unwrap_or(self.commit);
        format!("a2a-tck-{commit}{}", if self.is_corrected() { "-corrected" } else { "" })
    }
}

/// Puts the files of a commit into a folder.
fn copy(repository: &Path, commit: &str, folder: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let archive = folder.with_extension("tar");
    let mut pack = Command::new("git");
    pack.arg("-C").arg(repository).args(["archive", "--format=tar", "--output"]).arg(&archive).arg(commit);
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(&archive).arg("-C").arg(folder);
    for command in [&mut pack, &mut unpack] {
        let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cannot copy {commit} of {}: {}", repository.display(), said.trim()));
        }
    }
    std::fs::remove_file(&archive).map_err(|error| format!("{}: {error}", archive.display()))
}

fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// One hash of all files below a folder: of a line `{path}\0{SHA-256 of the content}` for each, in the order of their paths. The
/// content of a link is where it leads.
fn tree_hash(folder: &Path) -> Result<String, String> {
    let mut files = Vec::new();
    list(folder, folder, &mut files).map_err(|error| format!("{}: {error}", folder.display()))?;
    files.sort();
    Ok(sha256(files.iter().map(String::as_bytes)))
}

fn list(root: &Path, folder: &Path, files: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let (kind, path) = entry.map(|entry| (entry.file_type(), entry.path()))?;
        let kind = kind?;
        if kind.is_dir() {
            list(root, &path, files)?;
            continue;
        }
        let content = if kind.is_symlink() {
            std::fs::read_link(&path)?.to_string_lossy().into_owned().into_bytes()
        } else {
            std::fs::read(&path)?
        };
        let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        files.push(format!("{relative}\0{}\n", sha256([content.as_slice()])));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::{Kit, PublishedKit, sha256, tree_hash};
    use crate::conformance::corrections::{Change, Correction, Edit};
    use crate::folders::target;

    /// A folder that no other test uses, empty.
    fn folder(name: &str) -> std::path::PathBuf {
        let folder = target().join("kit-tests").join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        folder
    }

    #[test]
    fn a_change_of_any_file_changes_the_hash_of_the_tree() {
        let folder = folder("tree");
        let write = |file: &str, text: &str| {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("the folder can be made");
            std::fs::write(path, text).expect("the file can be written");
            tree_hash(&folder).expect("the files can be read")
        };
        let first = write("a/b.py", "1");
        let changed = write("a/b.py", "2");
        let added = write("c.py", "");
        assert!(first != changed && changed != added && added != first);
        std::fs::remove_file(folder.join("c.py")).expect("it is there");
        assert_eq!(write("a/b.py", "1"), first);
    }

    /// A repository with one commit of one file, and the name of the commit.
    fn repository(folder: &Path) -> String {
        let git = |words: &[&str]| {
            let mut git = Command::new("git");
            git.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@t.example"]);
            git.args(["-c", "commit.gpgsign=false"]).args(words);
            let output = git.output().expect("git is there");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        git(&["init", "--quiet"]);
        std::fs::write(folder.join("a.py"), "one two").expect("the file can be written");
        git(&["add", "a.py"]);
        git(&["commit", "--quiet", "--message", "one"]);
        // What is changed in the checkout is not what is run.
        std::fs::write(folder.join("a.py"), "changed").expect("the file can be written");
        git(&["rev-parse", "HEAD"])
    }

    fn leak(text: String) -> &'static str {
        Box::leak(text.into_boxed_str())
    }

    fn tree_of_one_file(text: &str) -> &'static str {
        let line = format!("a.py\0{}\n", sha256([text.as_bytes()]));
        leak(sha256([line.as_bytes()]))
    }

    #[test]
    fn a_kit_is_the_commit_that_was_pinned_and_its_corrections() {
        let folder = folder("pinned");
        let commit = leak(repository(&folder));
        let edits: &'static [Edit] = Box::leak(Box::new([Edit::new("two", "2", "a digit is shorter")]));
        let change = Change::Edit { before: leak(sha256([b"one two".as_slice()])), edits };
        let correction = Correction { file: "a.py", change, after: leak(sha256([b"one 2".as_slice()])) };
        let published: &'static PublishedKit = Box::leak(Box::new(PublishedKit {
            commit,
            tree: tree_of_one_file("one two"),
            corrected_tree: tree_of_one_file("one 2"),
            corrections: Box::leak(Box::new([correction])),
        }));
        for (corrected, text) in [(false, "one two"), (true, "one 2")] {
            let kit = Kit::prepare(published, &folder, corrected, &folder.join("out")).expect("it is the pinned one");
            assert_eq!(kit.is_corrected(), corrected);
            let read = std::fs::read_to_string(kit.folder.join("a.py")).expect("the file is there");
            assert_eq!(read, text);
        }
        let other = PublishedKit { commit, tree: "0", corrected_tree: "0", corrections: published.corrections };
        for corrected in [false, true] {
            let refused = Kit::prepare(Box::leak(Box::new(PublishedKit { ..other })), &folder, corrected, &folder);
            let refused = refused.err().expect("the files are not the pinned ones");
            assert!(refused.ends_with("expected 0"), "{refused}");
        }
    }

    #[test]
    fn a_commit_that_is_not_there_is_refused() {
        static NOWHERE: PublishedKit = PublishedKit {
            commit: "0000000000000000000000000000000000000000",
            tree: "",
            corrected_tree: "",
            corrections: &[] as &[Correction],
        };
        let folder = folder("nowhere");
        let refused = Kit::prepare(&NOWHERE, &folder, false, &folder).err().expect("there is no such commit");
        assert!(refused.starts_with("cannot copy 0000000000000000000000000000000000000000 of "), "{refused}");
    }
}
