//! The flags by which commands that work on files name the data folder of a server.

use std::path::PathBuf;

use clap::Args;

use crate::config::SettingFlags;

/// Which database.
#[derive(Args)]
pub(crate) struct DataArgs {
    /// Folder of the database [default: from the configuration, else ./switchboard-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Configuration file that names the folder [default: switchboard.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl DataArgs {
    pub(crate) fn settings(&self) -> SettingFlags {
        SettingFlags::data(self.data.as_deref())
    }
}
