//! The ways to install the binary work: the lines of the `Dockerfile`, of the systemd unit and of the README are run here,
//! without an engine for containers and without systemd. Paths of the image become paths of a folder; the build, which
//! takes minutes, is replaced by the binary that this test was built with.

#![allow(clippy::unwrap_used, reason = "a test may say plainly what it knows")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use switchboard_test_servers::free_addr;

const BINARY: &str = env!("CARGO_BIN_EXE_switchboard");
const TOKENS: &str = "q6V0mDk2H1rT9yXw4bZc alice";
/// With a pause of 20 ms after each, half a minute or more.
const LOOKS_MAX: u32 = 1_500;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(project().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A command that sees nothing of the environment of this test but what it needs to start programs.
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
    command
}

fn said(Output { status, stdout, stderr }: &Output) -> String {
    format!("{status}\n{}{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr))
}

/// A server that is killed if the test fails.
struct Served(Child);

impl Served {
    fn start(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = eventually("the server stops", || self.0.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS_MAX {
        if let Some(seen) = look() {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("never happened: {what}")
}

/// The instructions of a Dockerfile: each a word and the rest of its line, continued lines put together.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let instructions = joined.lines().filter_map(|line| line.trim().split_once(' '));
    instructions.map(|(word, rest)| (word.to_owned(), rest.trim().to_owned())).collect()
}

/// The words of the form `["a", "b"]`, which no shell splits.
fn exec_form(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text:?} is not the exec form: {error}"))
}

/// What stands in for an image: a folder whose paths are those of the image, and what its instructions said.
#[derive(Default)]
struct Image {
    /// What later stages call this one.
    name: String,
    root: PathBuf,
    workdir: String,
    variables: Vec<(String, String)>,
    user: String,
    health: Vec<String>,
    entrypoint: Vec<String>,
    cmd: Vec<String>,
}

impl Image {
    fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// One of the image's own command lines, as the engine for containers would run it.
    fn run(&self, line: &[String]) -> Command {
        let mut command = command(self.path(&line[0]));
        command.args(&line[1..]).current_dir(self.path(&self.workdir)).envs(self.variables.iter().cloned());
        command
    }
}

/// Plays the Dockerfile through: one folder for each stage.
fn build(text: &str, folder: &Path) -> Image {
    let mut stages: Vec<Image> = Vec::new();
    for (word, rest) in instructions(text) {
        if word == "FROM" {
            let name = rest.split_once(" AS ").map_or("", |(_, name)| name).to_owned();
            let root = folder.join(format!("stage-{}", stages.len()));
            std::fs::create_dir_all(&root).unwrap();
            stages.push(Image { name, root, ..Image::default() });
            continue;
        }
        let (image, earlier) = stages.split_last_mut().expect("a Dockerfile begins with FROM");
        match word.as_str() {
            "WORKDIR" => {
                image.workdir = rest;
                std::fs::create_dir_all(image.path(&image.workdir)).unwrap();
            }
            "COPY" => copy(image, &rest, earlier),
            "RUN" => run(image, &rest),
            "ENV" => {
                let pairs = rest.split_whitespace().map(|pair| pair.split_once('=').unwrap());
                image.variables.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            "VOLUME" => assert!(image.path(&rest).is_dir(), "{rest} is there before it is mounted"),
            "EXPOSE" => assert_eq!(rest, "8080", "the default port"),
            "STOPSIGNAL" => assert_eq!(rest, "SIGTERM"),
            "USER" => image.user = rest,
            "HEALTHCHECK" => image.health = exec_form(rest.split_once("CMD ").unwrap().1),
            "ENTRYPOINT" => image.entrypoint = exec_form(&rest),
            "CMD" => image.cmd = exec_form(&rest),
            unknown => panic!("this test does not know {unknown}"),
        }
    }
    stages.pop().unwrap()
}

/// Copies from an earlier stage. What comes from the project itself is not copied: only the build would need it.
fn copy(image: &Image, rest: &str, earlier: &[Image]) {
    let Some(name) = rest.split_whitespace().find_map(|word| word.strip_prefix("--from=")) else { return };
    let source = earlier.iter().find(|stage| stage.name == name).unwrap_or_else(|| panic!("no stage {name}"));
    let paths: Vec<&str> = rest.split_whitespace().filter(|word| !word.starts_with("--")).collect();
    let [from, to] = paths[..] else { panic!("COPY {rest}") };
    let (from, to) = (source.path(from), image.path(to));
    if from.is_dir() {
        std::fs::create_dir_all(&to).unwrap();
    } else {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        // A link, so that this process never has the binary open for writing: see `run`.
        std::fs::hard_link(&from, &to).unwrap_or_else(|error| panic!("COPY {rest}: {error}"));
    }
}

/// Runs a line of the build stage in a shell, with its absolute paths inside the folder of the stage. `cargo` is a function
/// of that shell: it checks what it is asked for, and leaves the binary where a release build would. It is not a script in a
/// file: the system refuses to run a file while any process, such as a child that another test just forked, can write to it.
fn run(image: &Image, line: &str) {
    let cargo = format!(
        "cargo() {{ [ \"$*\" = 'build --release --locked --package {}' ] || {{ echo \"unexpected: $*\" >&2; exit 9; }}\n\
         mkdir -p target/release && cp '{BINARY}' target/release/switchboard; }}",
        env!("CARGO_PKG_NAME")
    );
    let line = line.replace(" /", &format!(" {}/", image.root.display()));
    let script = format!("{cargo}\n{line}");
    let ran = command("sh").args(["-ec", &script]).current_dir(image.path(&image.workdir)).output().unwrap();
    assert!(ran.status.success(), "RUN {line}: {}", said(&ran));
}

#[test]
fn the_image_serves_and_its_health_check_tells_whether_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let text = read("Dockerfile");
    let image = build(&text, folder.path());
    assert!(!["", "root", "0"].contains(&image.user.as_str()), "the server does not run as root");
    let serve = [image.entrypoint.clone(), image.cmd.clone()].concat();
    let refused = image.run(&serve).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(
        said(&refused).contains("BIND_HOST: 0.0.0.0:8080 can be reached from other machines"),
        "{}",
        said(&refused)
    );

    // As `docker run --env` would set them: tokens, and a port that no other test uses.
    let port = free_addr().port().to_string();
    let with = |mut command: Command| {
        command.env("SWITCHBOARD_TOKENS", TOKENS).env("PORT", &port);
        command
    };
    let check = || with(image.run(&image.health)).output().unwrap();
    let unwell = check();
    assert_eq!(unwell.status.code(), Some(1), "nothing listens yet: {}", said(&unwell));
    let server = Served::start(with(image.run(&serve)));
    eventually("the health check passes", || check().status.success().then_some(()));
    assert!(image.path("/data/switchboard-data/switchboard.db").exists(), "tasks are kept in the volume");
    // It is healthy before it is ready: first it looks for interrupted runs.
    let ask = || with(image.run(&[image.health.clone(), vec!["--ready".to_owned()]].concat())).output().unwrap();
    let ready = eventually("the server is ready", || Some(ask()).filter(|ready| ready.status.success()));
    assert_eq!(said(&ready), "exit status: 0\nready\n");
    server.stop();
    assert_eq!(check().status.code(), Some(1), "the server is gone");
}

#[test]
fn the_dockerfile_builds_with_the_oldest_rust_that_is_supported() {
    let rust = env!("CARGO_PKG_RUST_VERSION");
    assert!(read("Dockerfile").contains(&format!("\nFROM rust:{rust}-")), "rust-version is {rust}");
    let readme = read("README.md");
    assert!(readme.contains(&format!("Rust {rust}")), "the README names the oldest Rust that is supported, {rust}");
    assert!(readme.contains("127.0.0.1:8080"), "the README names the default address");
    assert!(readme.contains("\ncargo install --locked --path crates/switchboard-cli"), "{}", project().display());
    let manifest = read("crates/switchboard/Cargo.toml");
    assert!(readme.contains("\nswitchboard = { git = ") && manifest.contains("\nname = \"switchboard\""));
}

/// The value of a key in a unit of systemd.
fn unit_value<'a>(unit: &'a str, key: &str) -> &'a str {
    unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap_or_else(|| panic!("no {key}"))
}

#[test]
fn the_service_starts_reloads_and_stops() {
    let unit = read("deploy/switchboard.service");
    let folder = tempfile::tempdir().unwrap();
    let port = free_addr().port();
    std::fs::create_dir(folder.path().join("state")).unwrap();
    std::fs::write(
        folder.path().join("switchboard.toml"),
        format!("[server]\nlisten = \"127.0.0.1:{port}\"\ntokens_file = \"tokens.txt\"\n"),
    )
    .unwrap();
    let tokens = folder.path().join("state/tokens.txt");
    std::fs::write(&tokens, TOKENS).unwrap();
    let here = |text: &str| {
        text.replace("/usr/local/bin/switchboard", BINARY)
            .replace("/etc/switchboard", &folder.path().display().to_string())
            .replace("/var/lib/switchboard", &folder.path().join("state").display().to_string())
    };
    let line = here(unit_value(&unit, "ExecStart"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut start = command(words[0]);
    start.args(&words[1..]).current_dir(here(unit_value(&unit, "WorkingDirectory")));
    let server = Served::start(start);
    let url = format!("http://127.0.0.1:{port}");
    let health = |args: &[&str]| command(BINARY).arg("health").args(args).current_dir(folder.path()).output().unwrap();
    eventually("the server is ready", || health(&["--ready", &url]).status.success().then_some(()));
    // In a folder with a configuration, its server is the one that is asked.
    assert_eq!(said(&health(&[])), "exit status: 0\nok\n");

    let status = |token: &str| {
        let bearer = format!("Authorization: Bearer {token}");
        let options = [
            "-sS",
            "--max-time",
            "20",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "-H",
            "A2A-Version: 1.0",
            "-H",
            &bearer,
        ];
        String::from_utf8(command("curl").args(options).arg(format!("{url}/tasks")).output().unwrap().stdout).unwrap()
    };
    let [old, new] = [TOKENS.split(' ').next().unwrap(), "e7Jp5sNf8uLa3GhQ0oRi"];
    assert_eq!((status(old).as_str(), status(new).as_str()), ("200", "401"));
    std::fs::write(&tokens, format!("{new} bob")).unwrap();
    let reload = unit_value(&unit, "ExecReload").replace("$MAINPID", &server.0.id().to_string());
    assert!(command("sh").args(["-c", &reload]).status().unwrap().success(), "{reload}");
    eventually("the new tokens are in use", || (status(new) == "200").then_some(()));
    assert_eq!(status(old), "401", "a token that is gone is refused");
    server.stop();
    assert_eq!(health(&["--ready", &url]).status.code(), Some(1));
}

#[test]
fn shells_and_man_know_every_command_and_flag() {
    let folder = tempfile::tempdir().unwrap();
    let switchboard = |args: &[&str]| {
        let output = command(BINARY).args(args).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = switchboard(&["completion", shell]);
        for word in ["serve", "outbox", "health", "tokens", "public-url"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    let script = folder.path().join("completion.bash");
    std::fs::write(&script, switchboard(&["completion", "bash"])).unwrap();
    let completed = "source completion.bash; COMP_WORDS=(switchboard serve --public-); COMP_CWORD=2; \
                     _switchboard switchboard --public- serve; echo \"${COMPREPLY[@]}\"";
    let output = command("bash").args(["-c", completed]).current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "--public-url", "{:?}", output.stderr);

    assert!(switchboard(&["man"]).contains("switchboard\\-serve(1)"));
    let page = switchboard(&["man", "serve"]);
    assert!(page.starts_with(".ie") && page.contains("\\-\\-public\\-url") && page.contains("\\-\\-tokens"), "{page}");
    switchboard(&["man", "--out", "man1"]);
    for page in ["switchboard.1", "switchboard-serve.1", "switchboard-db-backup.1"] {
        assert!(folder.path().join("man1").join(page).exists(), "{page}");
    }
    let unknown = command(BINARY).args(["man", "sarve"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(said(&unknown).contains("there is no command \"sarve\"; there are send, "), "{}", said(&unknown));
}
