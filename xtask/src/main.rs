//! The development commands of this repository: `cargo run -p xtask -- <command>`.
//!
//! A command is a module with a `run` that prints for a person and returns whether all is well: `tidy` holds the tree
//! to the rules written down in `tidy/rules.rs` (the same checks run as a test), `conformance` runs the official test
//! kit against the conformance agent, `clients` the SDKs of other people against the binary, `servers` our client against
//! servers of theirs, `relays` both with the binary between them, `proto` writes the Rust code of the protobuf messages, `sbom`
//! prints what the binary is built from, `fuzz` runs the fuzz targets for longer than the tests do, `upgrade` runs servers of the build before
//! beside those of this one, `path` lists the files that one send executes.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "chores talk to the person who runs them")]

mod clients;
mod conformance;
mod folders;
mod fuzz;
mod packages;
mod path;
#[cfg(any(test, feature = "proto"))]
mod proto;
mod relays;
mod sbom;
mod server;
mod servers;
mod steps;
mod tidy;
mod upgrade;
mod within;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo run -p xtask -- <chore>

chores:
  tidy           check the tree against the rules of this repository (imports, texts, links, dependencies)
  conformance    run the official test kit: --kit PATH [--version 1.0|0.3] [--as-published] [--python PYTHON] [--out DIR]
  clients        run other SDKs against the binary: [NAME…] (tests/clients tells more)
  servers        call servers of other SDKs with the client: [NAME…] (tests/servers tells more)
  relays         run clients of other SDKs against servers of other SDKs, through the binary: [UPSTREAM…] (docs/relay.md tells more)
  sbom           print what the binary is built from, as CycloneDX 1.5 in JSON
  fuzz           run the fuzz targets: [--seconds N, for each] [--seed N]
  path           list the files that one send executes: [--binary FILE]; needs valgrind
  upgrade        upgrade a database under load, with servers of the build before: --before BINARY
  proto          write the code of the protobuf messages: [--check]; needs --features proto";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(),
        ["sbom"] => sbom::run(),
        ["fuzz", ref options @ ..] => fuzz::run(options),
        ["path", ref options @ ..] => path::run(options),
        ["upgrade", ref options @ ..] => upgrade::run(options),
        ["conformance", ..] => return conformance::run(&words[1..]),
        ["clients", ..] => return clients::run(&words[1..]),
        ["servers", ..] => return servers::run(&words[1..]),
        ["relays", ..] => return relays::run(&words[1..]),
        #[cfg(feature = "proto")]
        ["proto"] => proto::write(),
        #[cfg(feature = "proto")]
        ["proto", "--check"] => proto::check(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
