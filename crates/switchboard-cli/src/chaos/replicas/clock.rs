//! The wall clock of a server, which is wrong and jumps. libfaketime shifts it from outside, by what a file says, so that the server is the same
//! program as everywhere. Its monotonic clock is not touched. Time namespaces cannot do this: they shift the other clocks.

use std::io;
use std::path::{Path, PathBuf};

use super::super::dice::Dice;

/// Where packages put the library, for each kind of machine a folder.
const FOLDERS: &str = "/usr/lib";
const LIBRARY: &str = "faketime/libfaketime.so.1";
/// How wrong a clock is at most.
const WRONG_S_MAX: u64 = 600;

/// The library that shifts clocks, if there is one.
pub(super) fn library(asked: Option<&Path>) -> Option<PathBuf> {
    if let Some(asked) = asked {
        return Some(asked.to_path_buf());
    }
    let folders = std::fs::read_dir(FOLDERS).ok()?;
    folders.filter_map(|folder| Some(folder.ok()?.path().join(LIBRARY))).find(|library| library.exists())
}

pub(super) struct WrongClock {
    library: PathBuf,
    /// How wrong the clock is. The server reads it again every second.
    file: PathBuf,
}

impl WrongClock {
    pub(super) fn make(library: &Path, folder: &Path, dice: &mut Dice) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let clock = Self { library: library.to_path_buf(), file: folder.canonicalize()?.join("clock") };
        clock.jump(dice)?;
        Ok(clock)
    }

    /// Sets the clock to another time.
    pub(super) fn jump(&self, dice: &mut Dice) -> io::Result<()> {
        let wrong_s = dice.between(0, 2 * WRONG_S_MAX).cast_signed() - WRONG_S_MAX.cast_signed();
        // The server never sees half of it.
        let next = self.file.with_extension("next");
        std::fs::write(&next, format!("{wrong_s:+}s\n"))?;
        std::fs::rename(&next, &self.file)
    }

    /// What makes a server use it.
    pub(super) fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }
}
