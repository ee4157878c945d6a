//! Lists of the model's own things. When one is written, each item is made just before, so a reply needs no copy of its lists.

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::dialect::json::List;

use super::spelling::Spelling;

/// A list as it was read, or the model's list that is to be written.
pub(super) enum Items<'a, T, M> {
    Read(List<T>),
    FromModel(&'a [M], &'a Spelling, PhantomData<T>),
}

/// What one thing of the model looks like on the wire.
pub(super) trait FromModel<'a, M> {
    fn of(model: &'a M, spelling: &'a Spelling) -> Self;
}

impl<'a, T, M> Items<'a, T, M> {
    pub(super) fn of(models: &'a [M], spelling: &'a Spelling) -> Self {
        Self::FromModel(models, spelling, PhantomData)
    }

    /// The list as it was read. One that was made to be written is empty to readers.
    pub(super) fn read(self) -> List<T> {
        match self {
            Self::Read(list) => list,
            Self::FromModel(..) => List { items: Vec::new(), total: 0 },
        }
    }
}

impl<'de, T: Deserialize<'de>, M> Deserialize<'de> for Items<'_, T, M> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        List::deserialize(deserializer).map(Self::Read)
    }
}

impl<'a, T: FromModel<'a, M> + Serialize, M> Serialize for Items<'a, T, M> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Read(list) => list.serialize(serializer),
            Self::FromModel(models, spelling, _) => {
                serializer.collect_seq(models.iter().map(|model| T::of(model, spelling)))
            }
        }
    }
}
