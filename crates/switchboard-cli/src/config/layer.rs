//! What one layer says: the flags, the environment, or the file. Values are of the right type here; whether they are good is judged
//! once it is known which of them hold.

use std::collections::BTreeMap;

use super::origin::{Given, Origin};
use super::row::{SettingId, Table, Value};

/// Settings that are given, by their table and key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    pub(super) values: BTreeMap<SettingId, Given<Value>>,
}

impl Layer {
    pub(crate) fn set(&mut self, setting: SettingId, given: Given<Value>) {
        self.values.insert(setting, given);
    }

    pub(crate) fn take(&mut self, setting: SettingId) -> Option<Given<Value>> {
        self.values.remove(&setting)
    }

    pub(crate) fn has(&self, setting: SettingId) -> bool {
        self.values.contains_key(&setting)
    }

    /// Where the first setting of a table was given, if one was.
    pub(super) fn first_of(&self, table: Table) -> Option<&Origin> {
        self.values.iter().find(|((of, _), _)| *of == table).map(|(_, given)| &given.from)
    }

    /// The part of the layer about one table, and the rest.
    pub(super) fn split(&self, table: Table) -> (Self, Self) {
        let (of, rest) = self.values.clone().into_iter().partition(|((of, _), _)| *of == table);
        (Self { values: of }, Self { values: rest })
    }
}
