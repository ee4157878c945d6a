//! What the command agents of the child server run: this same binary. It prints the lines it is asked for, and has a
//! child of its own that does nothing for a long time, so that whoever fails to clear up after it is found out.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::args::ChaosAgentArgs;
use super::wish::line;
use crate::failure::Failure;

/// Longer than any run is looked at, and not for ever.
const LINGER: Duration = Duration::from_secs(1_800);

pub(crate) fn run(args: &ChaosAgentArgs) -> Result<(), Failure> {
    if args.linger {
        std::thread::sleep(LINGER);
        return Ok(());
    }
    print().map_err(Failure::runtime)
}

fn print() -> io::Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [lines, pause_ms, salt] = numbers[..] else {
        return Err(io::Error::other("expected three numbers: how many lines, the pause after each in ms, the salt"));
    };
    // Never waited for: it is for the server to end it.
    let _child = Command::new(std::env::current_exe()?)
        .args(["chaos-agent", "--linger"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut out = io::stdout().lock();
    for number in 1..=u32::try_from(lines).unwrap_or(u32::MAX) {
        out.write_all(line(salt, number).as_bytes())?;
        out.flush()?;
        std::thread::sleep(Duration::from_millis(pause_ms));
    }
    Ok(())
}
