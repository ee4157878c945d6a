//! `switchboard completion` and `switchboard man`: what clap knows about the command line, for shells and for `man`.

use std::path::Path;

use clap::{Command, CommandFactory};

use crate::cli::{Cli, CompletionArgs, ManArgs};
use crate::failure::Failure;

pub(crate) fn completion(args: &CompletionArgs) -> String {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "switchboard", &mut script);
    String::from_utf8_lossy(&script).trim_end().to_owned()
}

/// The page that was asked for, or what was written where.
///
/// # Errors
/// When there is no such command, or the folder cannot be written to.
pub(crate) fn man(args: &ManArgs, folder: &Path) -> Result<String, Failure> {
    // Gives every command its full name, as in `switchboard db backup`.
    let mut all = Cli::command();
    all.build();
    if let Some(out) = &args.out {
        let out = folder.join(out);
        let cannot = |error| Failure::Runtime(format!("{}: {error}", out.display()));
        std::fs::create_dir_all(&out).map_err(cannot)?;
        clap_mangen::generate_to(all, &out).map_err(cannot)?;
        return Ok(format!("wrote the pages to {}", out.display()));
    }
    let mut command = all;
    for name in &args.command {
        let known: Vec<&str> =
            command.get_subcommands().filter(|known| !known.is_hide_set()).map(Command::get_name).collect();
        let missing = || Failure::Usage(format!("there is no command {name:?}; there are {}", known.join(", ")));
        command = command.find_subcommand(name).cloned().ok_or_else(missing)?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(Failure::runtime)?;
    Ok(String::from_utf8_lossy(&page).trim_end().to_owned())
}
