//! Which functions of the server requests run, counted by callgrind, and the script by which the linker places them beside each other
//! (docs/decisions/0026). Requests run about a tenth of the program, a few lines of it in each page; in one place, that tenth takes fewer pages and
//! fewer lines of the processor's caches.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::credentials::kinds::{KINDS, Kind, Proof};
use crate::credentials::{program, work_of};
use crate::load::{GrpcPool, Outcome, Pool, Until, Work, create};
use crate::server::Server;

/// Writes the order of the server's functions.
#[derive(clap::Parser)]
pub struct Arguments {
    /// The `switchboard` binary whose functions are counted. By default the one beside this binary.
    #[arg(long)]
    server: Option<PathBuf>,
    /// Requests of each kind.
    #[arg(long, default_value_t = 1_000)]
    requests: u64,
    /// The script that is written: by default that of the crate.
    #[arg(long)]
    script: Option<PathBuf>,
    /// Counts nothing, and says how many names of the script the binary has: another compiler may name functions in another way.
    #[arg(long)]
    check: bool,
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/switchboard-cli/hot-functions.ld");
const CONNECTIONS: usize = 4;
/// A function that is called at least once in so many requests of one kind is placed. Commits of several requests share a transaction.
const REQUESTS_OF_A_CALL: u64 = 16;
/// Copies of one generic function for several types have the same name in the script, because what tells them apart changes with the compiler. They
/// are placed if at least this part of their bytes is run.
const HOT_PART: u64 = 4;

/// Counts, and writes the script.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let program = program(arguments.server.as_ref())?;
    let path = arguments.script.clone().unwrap_or_else(|| SCRIPT.into());
    let symbols = symbols(&program)?;
    if arguments.check {
        return check(&path, &symbols);
    }
    let mut called = HashSet::new();
    let [none, others @ ..] = KINDS;
    let (memory, durable): (&[_], &[_]) = (&["--memory"], &["--data", "data", "--effects", "some"]);
    let servers = [(none, memory), (none, durable)].into_iter().chain(others.map(|kind| (kind, memory)));
    for (kind, settings) in servers {
        let profile = runtime.block_on(profile(&program, kind, settings, arguments.requests))?;
        let calls_min = arguments.requests / REQUESTS_OF_A_CALL;
        let often = calls(&profile).into_iter().filter(|(_, calls)| *calls >= calls_min);
        called.extend(often.map(|(name, _)| name.to_owned()));
    }
    let names = placed(&symbols, &called);
    ensure!(!names.is_empty(), "none of {} functions is one of the binary; was it stripped?", called.len());
    std::fs::write(&path, script(&names)).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{} names of {} functions that are called", names.len(), called.len());
    Ok(())
}

/// Fails if a tenth of the script names nothing.
fn check(path: &Path, symbols: &[Symbol]) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let known: HashSet<&str> = symbols.iter().map(|symbol| lasting(&symbol.name)).collect();
    let names: Vec<&str> = text.lines().filter_map(named).collect();
    let found = names.iter().filter(|name| known.contains(**name)).count();
    println!("the binary has {found} of {} names", names.len());
    ensure!(
        found * 10 >= names.len() * 9,
        "the script is out of date: run hot-functions without --check, and build again"
    );
    Ok(())
}

/// What callgrind says of a server that answers so many requests of each kind. Callers with a credential send; those without do all that there is.
async fn profile(program: &Path, kind: (&'static str, Proof), settings: &[&str], requests: u64) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let kind = Kind::prepare(kind, folder.path(), Some(usize::try_from(requests)?))?;
    let counts = folder.path().join("counts");
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--demangle=no", &format!("--callgrind-out-file={}", counts.display())]);
    command.arg(program).arg("serve").envs(kind.variables.iter().map(|(name, value)| (name, value)));
    let settings: Vec<&str> = settings.iter().copied().chain(kind.arguments.iter().map(String::as_str)).collect();
    let server = Server::start_by(command, folder.path(), &settings)?;
    server.until_ready().await?;
    let address = server.address;
    let check = |outcome: Outcome| {
        let error = outcome.first_error.unwrap_or_default();
        ensure!(outcome.errors == 0 && outcome.requests == requests, "{}: a request failed: {error}", kind.name);
        Ok(())
    };
    let mut pool = Pool::open(address, CONNECTIONS).await?;
    check(pool.run(&work_of(&kind), Until::Requests(requests)).await)?;
    if kind.credentials.is_empty() {
        let stored = create(address, CONNECTIONS, true).await?;
        for work in [Work::SendOld, Work::Stream, Work::Get(stored.into())] {
            check(pool.run(&work, Until::Requests(requests)).await)?;
        }
        check(GrpcPool::open(address, CONNECTIONS).await?.run(Until::Requests(requests)).await)?;
    }
    server.interrupt()?;
    std::fs::read_to_string(&counts).context("callgrind has written nothing; is valgrind installed?")
}

/// How often each function was called. Functions are named where they first occur, as `(NUMBER) NAME`, and by their number after that.
fn calls(profile: &str) -> HashMap<&str, u64> {
    let (mut names, mut calls) = (HashMap::new(), HashMap::new());
    let mut callee = "";
    for line in profile.lines() {
        let (is_callee, named) = match (line.strip_prefix("fn=("), line.strip_prefix("cfn=(")) {
            (Some(named), _) => (false, named),
            (_, Some(named)) => (true, named),
            (None, None) => {
                let count = line.strip_prefix("calls=").and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
                *calls.entry(callee).or_default() += count.unwrap_or_default();
                continue;
            }
        };
        let Some((number, name)) = named.split_once(')') else { continue };
        // Calls of itself have a name with a number of their own.
        let name = name.trim().split('\'').next().unwrap_or_default();
        let known = names.entry(number).or_insert(name);
        if is_callee {
            callee = known;
        }
    }
    calls
}

/// A function of the binary.
struct Symbol {
    name: String,
    bytes: u64,
}

/// The functions of the binary, in its order.
fn symbols(program: &Path) -> Result<Vec<Symbol>> {
    let listed = Command::new("nm").args(["--numeric-sort", "--print-size", "--defined-only"]).arg(program).output();
    let listed = listed.context("nm cannot be run; it is one of binutils")?;
    ensure!(listed.status.success(), "nm: {}", String::from_utf8_lossy(&listed.stderr));
    let of_line = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        [_, bytes, "t" | "T", name] => {
            Some(Symbol { name: name.to_owned(), bytes: u64::from_str_radix(bytes, 16).ok()? })
        }
        _ => None,
    };
    Ok(String::from_utf8_lossy(&listed.stdout).lines().filter_map(of_line).collect())
}

/// The names in the script, in the order of the binary.
fn placed(symbols: &[Symbol], called: &HashSet<String>) -> Vec<String> {
    let mut bytes: HashMap<&str, (u64, u64)> = HashMap::new();
    for symbol in symbols {
        let (hot, all) = bytes.entry(lasting(&symbol.name)).or_default();
        *all += symbol.bytes;
        *hot += if called.contains(&symbol.name) { symbol.bytes } else { 0 };
    }
    let mut named = HashSet::new();
    let names = symbols.iter().map(|symbol| lasting(&symbol.name)).filter(|name| {
        let (hot, all) = bytes[name];
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte));
        hot > 0 && hot * HOT_PART >= all && is_plain && named.insert(*name)
    });
    names.map(str::to_owned).collect()
}

/// What stays of a name when compilers and versions change: names of Rust end with `17h`, sixteen digits and an `E`.
fn lasting(name: &str) -> &str {
    match name.rfind("17h") {
        Some(at) if name.starts_with("_ZN") => &name[..at + 3],
        _ => name,
    }
}

fn script(names: &[String]) -> String {
    let mut text = "/* The functions that requests run, beside each other (docs/decisions/0026). Written by `cargo run --release -p bench --bin \
                    hot-functions`. */\nSECTIONS\n{\n  .text.hot :\n  {\n"
        .to_owned();
    for name in names {
        let end = if name.starts_with("_ZN") { "*" } else { "" };
        text.push_str(&format!("    *(.text.{name}{end})\n"));
    }
    text.push_str("  }\n}\nINSERT BEFORE .text;\n");
    text
}

/// The name in a line of the script.
fn named(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("*(.text.")?.trim_end_matches([')', '*']))
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::{Symbol, calls, named, placed, script};

    const PROFILE: &str = "events: Ir\n\nfn=(1) main\n16 5\ncfn=(2) _ZN3one17h0123456789abcdefE\ncalls=3 20\n16 40\ncfn=(3) sqlite3_step\n\
                           calls=1 7\n16 9\n\nfn=(2)\n20 40\ncfn=(2)\ncalls=2 20\n21 3\ncfn=(4) _ZN3one17h0123456789abcdefE'2\ncalls=4 20\n21 3\n";

    #[test]
    fn the_calls_of_a_profile_are_added_up() {
        let mut found = calls(PROFILE);
        found.retain(|_, calls| *calls > 0);
        assert_eq!(found, HashMap::from([("_ZN3one17h0123456789abcdefE", 9), ("sqlite3_step", 1)]));
    }

    #[test]
    fn names_are_placed_in_the_order_of_the_binary_and_without_what_compilers_change() {
        let symbol = |name: &str, bytes| Symbol { name: name.to_owned(), bytes };
        let symbols = [
            symbol("_ZN3two17h00000000000000aaE", 10),
            symbol("_ZN3one17h0123456789abcdefE", 10),
            symbol("_ZN3one17hfedcba9876543210E", 30),
            symbol("sqlite3_step", 5),
            symbol("_ZN4many17h0000000000000001E", 10),
            symbol("_ZN4many17h0000000000000002E", 31),
        ];
        let called = ["sqlite3_step", "_ZN3one17h0123456789abcdefE", "_ZN4many17h0000000000000001E"];
        let called: HashSet<String> = called.map(str::to_owned).into();
        let names = placed(&symbols, &called);
        assert_eq!(names, ["_ZN3one17h", "sqlite3_step"]);
        let text = script(&names);
        assert_eq!(text.lines().filter_map(named).collect::<Vec<_>>(), names);
        assert!(
            text.contains("    *(.text._ZN3one17h*)\n    *(.text.sqlite3_step)\n  }\n}\nINSERT BEFORE .text;\n"),
            "{text}"
        );
    }
}
