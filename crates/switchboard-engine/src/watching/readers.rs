//! The readers of one tail. They have numbers, so that adding and waking one does not depend on how many there are, and the order is
//! fixed. Nearly every task has one reader, which needs no memory of its own.

use std::collections::BTreeMap;
use std::task::Waker;

/// A reader of the ring.
pub(super) struct Reader {
    /// The last update it was given.
    pub(super) cursor: u64,
    /// Set while it sleeps.
    pub(super) waker: Option<Waker>,
}

#[derive(Default)]
pub(super) struct Readers {
    /// The one with the least number, unless it has gone before others.
    first: Option<(u64, Reader)>,
    others: BTreeMap<u64, Reader>,
    last_number: u64,
}

impl Readers {
    /// Adds a reader that has the updates up to `cursor`, and returns its number.
    pub(super) fn add(&mut self, cursor: u64) -> u64 {
        self.last_number += 1;
        let reader = Reader { cursor, waker: None };
        if self.is_empty() {
            self.first = Some((self.last_number, reader));
        } else {
            self.others.insert(self.last_number, reader);
        }
        self.last_number
    }

    pub(super) fn remove(&mut self, number: u64) {
        if self.first.take_if(|(first, _)| *first == number).is_none() {
            self.others.remove(&number);
        }
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Reader> {
        match &mut self.first {
            Some((first, reader)) if *first == number => Some(reader),
            _ => self.others.get_mut(&number),
        }
    }

    /// All of them, in the order of their numbers.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Reader> {
        self.first.iter_mut().map(|(_, reader)| reader).chain(self.others.values_mut())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }

    /// Whether there is one reader and no more.
    pub(super) fn is_one(&self) -> bool {
        usize::from(self.first.is_some()) + self.others.len() == 1
    }

    /// What every reader has been given; zero if there is none.
    pub(super) fn slowest_cursor(&self) -> u64 {
        let first = self.first.iter().map(|(_, reader)| reader.cursor);
        first.chain(self.others.values().map(|reader| reader.cursor)).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Readers;

    fn cursors(readers: &mut Readers) -> Vec<u64> {
        readers.all_mut().map(|reader| reader.cursor).collect()
    }

    #[test]
    fn readers_stay_in_the_order_in_which_they_came() {
        let mut readers = Readers::default();
        assert!(readers.is_empty() && !readers.is_one() && readers.slowest_cursor() == 0);
        let [first, second, third] = [7, 5, 6].map(|cursor| readers.add(cursor));
        assert_eq!((cursors(&mut readers), readers.slowest_cursor()), (vec![7, 5, 6], 5));
        readers.remove(first);
        let fourth = readers.add(9);
        assert_eq!(cursors(&mut readers), [5, 6, 9], "a place that became free is not before those who wait longer");
        assert!(readers.get_mut(first).is_none() && readers.get_mut(third).is_some_and(|reader| reader.cursor == 6));
        readers.remove(second);
        readers.remove(fourth);
        assert!(readers.is_one() && !readers.is_empty());
        readers.remove(third);
        assert!(readers.is_empty());
        let fifth = readers.add(1);
        assert!(readers.is_one() && readers.get_mut(fifth).is_some());
    }
}
