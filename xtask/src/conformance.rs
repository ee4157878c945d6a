//! `conformance`: runs the official test kit against the conformance agent and writes down what it said.
//!
//! In: a repository of the kit (`a2aproject/a2a-tck`, with its requirements installed for the Python named), which is no
//! part of this project and is left as it was: `kit` copies the one commit that results are published for, and makes the
//! `corrections` in the copy. Out: `NAME.json` for machines and `NAME.md` for people, named after the kit's commit. A
//! kit runs several times (`suites`): no single agent card unlocks all tests of 1.0, and the kit of 0.3 takes one
//! binding at a time. All is well when every failure is one that `known` explains.

mod corrections;
mod junit;
mod kit;
mod known;
mod served;
mod suites;
mod summary;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use junit::TestOutcome;
use kit::Kit;
use suites::{KitRun, SUITES, Suite};
use summary::{Run, Summary};

use crate::folders::{root, target};
use served::Served;

const USAGE: &str = "\
usage: cargo run -p xtask -- conformance --kit PATH [--version 1.0|0.3] [--as-published] [--replicas N] [--python PYTHON] [--out DIR]
                                         [--server PATH]

  --kit PATH       a clone of a2aproject/a2a-tck that has the commit of the version (docs/conformance names it)
  --version V      which kit to run: 1.0 (default) or 0.3
  --as-published   without the corrections
  --replicas N     so many servers on one PostgreSQL, behind a balancer that passes each request on to the next of them; the result must be
                   that of one server
  --python PYTHON  a Python with the kit's requirements (default: python3)
  --out DIR        where the summary goes (default: docs/conformance)
  --server PATH    the conformance agent (default: built from the example `conformance`)";

/// Runs the kit in all configurations. Fails on a failure of the kit that nothing explains, and on anything that keeps
/// the kit from running.
pub(crate) fn run(args: &[String]) -> ExitCode {
    if args.iter().any(|arg| matches!(arg.as_str(), "--help" | "-h")) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match Options::parse(args).and_then(|options| measure(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("conformance: {message}");
            ExitCode::from(2)
        }
    }
}

struct Options {
    suite: &'static Suite,
    /// The repository that has the kit.
    kit: PathBuf,
    as_published: bool,
    /// Servers that share a database; none is one server that keeps tasks in memory.
    replicas: Option<usize>,
    python: PathBuf,
    out: PathBuf,
    server: Option<PathBuf>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let (mut suite, mut as_published, mut replicas) = (&SUITES[0], false, None);
        let (mut kit, mut python, mut out, mut server) = (None, None, None, None);
        let mut args = args.iter();
        while let Some(name) = args.next() {
            if name == "--as-published" {
                as_published = true;
                continue;
            }
            if name == "--version" {
                let asked = args.next().map_or("", String::as_str);
                let found = SUITES.iter().find(|suite| suite.version == asked);
                suite = found.ok_or_else(|| format!("--version wants 1.0 or 0.3\n{USAGE}"))?;
                continue;
            }
            if name == "--replicas" {
                let asked =
                    args.next().and_then(|number| number.parse().ok()).filter(|number| (2..=16).contains(number));
                replicas = Some(asked.ok_or_else(|| format!("--replicas wants a number from 2 to 16\n{USAGE}"))?);
                continue;
            }
            let slot = match name.as_str() {
                "--kit" => &mut kit,
                "--python" => &mut python,
                "--out" => &mut out,
                "--server" => &mut server,
                _ => return Err(format!("unknown argument {name}\n{USAGE}")),
            };
            let value = args.next().ok_or_else(|| format!("{name} wants a value"))?;
            // The kit runs in its own folder, so a path is meant from here; a bare name is looked up by the system.
            let is_name = name == "--python" && !value.contains('/');
            let path = if is_name { Ok(value.into()) } else { std::path::absolute(value) };
            *slot = Some(path.map_err(|error| format!("{name} {value}: {error}"))?);
        }
        Ok(Options {
            suite,
            kit: kit.ok_or_else(|| format!("--kit is missing\n{USAGE}"))?,
            as_published,
            replicas,
            python: python.unwrap_or_else(|| "python3".into()),
            out: out.unwrap_or_else(|| root().join("docs/conformance")),
            server,
        })
    }
}

fn measure(options: &Options) -> Result<bool, String> {
    let folder = target().join("conformance");
    let kit = Kit::prepare(&options.suite.kit, &options.kit, !options.as_published, &folder)?;
    let agent = match &options.server {
        Some(path) => path.clone(),
        None => build(options.replicas.is_some())?,
    };
    let reports = folder.join(kit.name());
    let mut runs = Vec::new();
    for setting in options.suite.settings {
        if setting.needs_corrections && !kit.is_corrected() {
            println!("{}: not run, because the kit as published cannot", setting.name);
            continue;
        }
        println!("{}: running", setting.name);
        let run = run_kit(options, &kit, &agent, &reports, setting)?;
        println!("{}", run.line());
        runs.push(run);
    }
    let summary = Summary { suite: options.suite, kit, runs, replicas: options.replicas };
    let differs = summary.difference(&options.out)?;
    summary.write(&options.out)?;
    let unexplained = summary.unexplained().chain(differs);
    Ok(unexplained.inspect(|unexplained| println!("unexplained: {unexplained}")).count() == 0)
}

fn run_kit(
    options: &Options,
    kit: &Kit,
    agent: &Path,
    reports: &Path,
    setting: &'static KitRun,
) -> Result<Run, String> {
    let suite = options.suite;
    let reports = reports.join(setting.name);
    std::fs::create_dir_all(&reports).map_err(|error| format!("{}: {error}", reports.display()))?;
    let junit = reports.join("junit.xml");
    // The report of an earlier run must not be taken for this one's.
    let _ = std::fs::remove_file(&junit);
    let served = Served::start(agent, setting.config, options.replicas)?;
    let log = reports.join("pytest.log");
    let output = std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = output.try_clone().map_err(|error| error.to_string())?;
    // The exit status says only whether anything failed, which the report says better.
    let mut pytest = Command::new(&options.python);
    pytest
        .args(["-m", "pytest", &format!("{}{}", suite.tests, setting.tests)])
        .args(["-q", "--tb=short", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"])
        .arg(format!("{}={}", suite.address, served.url()))
        .arg(format!("--junitxml={}", junit.display()))
        .args(setting.pytest);
    if suite.reports_requirements {
        pytest.arg(format!("--compatibility-report={}", reports.join("compatibility").display()));
    }
    pytest
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(&kit.folder)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status()
        .map_err(|error| format!("cannot run {}: {error}", options.python.display()))?;
    let report =
        std::fs::read_to_string(&junit).map_err(|_| format!("the kit left no report, see {}", log.display()))?;
    let url = served.url();
    // Ports and paths differ from run to run and from machine to machine; the summary must not.
    let plain = |text: &str| text.replace(&url, "http://agent").replace(&*kit.folder.to_string_lossy(), "kit");
    let cases = junit::cases(&report, suite.tests).map(|mut case| {
        match &mut case.verdict {
            TestOutcome::Passed => {}
            TestOutcome::Failed(text) | TestOutcome::Skipped(text) | TestOutcome::ExpectedFailure(text) => {
                *text = plain(text);
            }
        }
        case
    });
    let run = Run::new(suite, setting, kit.is_corrected(), must_share(&reports), cases);
    served.check()?;
    Ok(run)
}

/// The kit's own figure: the share of MUST requirements that hold on every binding run.
fn must_share(reports: &Path) -> Option<String> {
    let text = std::fs::read_to_string(reports.join("compatibility.json")).ok()?;
    let report: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(report["summary"]["must_compatibility"].as_str()?.to_owned())
}

/// Builds the conformance agent and says where it lies.
fn build(for_postgres: bool) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let features = if for_postgres { &["--features", "postgres"][..] } else { &[] };
    let status = Command::new(cargo)
        .args(["build", "--release", "-p", "switchboard", "--example", "conformance"])
        .args(features)
        .current_dir(root())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err("the conformance agent does not build".to_owned());
    }
    Ok(target().join("release/examples/conformance"))
}
