//! The flags by which commands that work on a database name the data folder of a server, or its database in PostgreSQL.

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

/// Which database, in a folder or in PostgreSQL.
#[derive(Args)]
pub(crate) struct DatabaseArgs {
    /// Folder of the database [default: from the configuration, else ./switchboard-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// PostgreSQL in place of a folder, postgres://USER@HOST:PORT/DATABASE [default: from the configuration]
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    store: Option<String>,
    /// The schema in PostgreSQL that holds the tables [default: from the configuration, else switchboard]
    #[arg(long, value_name = "NAME", conflicts_with = "data")]
    store_schema: Option<String>,
    /// Configuration file that names them [default: switchboard.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl DatabaseArgs {
    pub(crate) fn settings(&self) -> SettingFlags {
        match &self.data {
            Some(data) => SettingFlags::data(Some(data)),
            None => SettingFlags::store(self.store.as_deref(), self.store_schema.as_deref()),
        }
    }
}

/// Which database in PostgreSQL.
#[derive(Args)]
pub(crate) struct StoreArgs {
    /// Its address, postgres://USER@HOST:PORT/DATABASE [default: from the configuration]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The schema that holds the tables [default: from the configuration, else switchboard]
    #[arg(long, value_name = "NAME")]
    store_schema: Option<String>,
    /// Configuration file that names them [default: switchboard.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl StoreArgs {
    pub(crate) fn settings(&self) -> SettingFlags {
        SettingFlags::store(self.store.as_deref(), self.store_schema.as_deref())
    }
}
