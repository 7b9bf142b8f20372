//! What a journal says now: the changes that are not undone, after every line was read.

use super::change::Change;
use super::line::Line;
use super::standing::Standing;
use crate::content::Content;

/// A change that is not undone yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub n: u64,
    /// The change.
    pub change: Change,
    /// For a knob: what it read after the write; None while that is not known.
    pub found: Option<Option<String>>,
}

/// The changes, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Entries {
    list: Vec<Entry>,
    next: u64,
}

impl Entries {
    /// What the lines after a header lead to, and what is to become of the changes.
    pub fn replay<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<(Self, Standing), String> {
        let mut entries = Self::default();
        let mut standing = Standing::Open;
        for (number, line) in lines.enumerate() {
            let line = serde_json::from_slice(line)
                .map_err(|error| format!("line {}: {error}", number + 2))?;
            match line {
                Line::Change { n, change } => entries.put(Entry {
                    n,
                    change,
                    found: None,
                }),
                Line::Found { n, value } => entries.found(n, value),
                Line::Undone { n } => entries.undone(&n),
                Line::Held => standing = Standing::Held,
                Line::Unconfirmed(it) => standing = Standing::Unconfirmed(it),
            }
        }
        // A number whose change is undone may be taken again: nothing speaks of it any more.
        entries.next = entries.list.iter().map(|it| it.n + 1).max().unwrap_or(0);
        Ok((entries, standing))
    }

    pub fn list(&self) -> &[Entry] {
        &self.list
    }

    /// The entry of a knob, if it is changed.
    pub fn knob(&self, name: &str) -> Option<&Entry> {
        self.list
            .iter()
            .find(|it| matches!(&it.change, Change::Knob { target, .. } if target == name))
    }

    /// Entries for changes that are about to be made; they are not among the others before they are on disk.
    pub fn of(&self, changes: Vec<Change>) -> Vec<Entry> {
        let numbered = (self.next..).zip(changes);
        numbered
            .map(|(next, change)| self.entry_for(change, next))
            .collect()
    }

    /// Takes up entries that [`Entries::of`] has made.
    pub fn take(&mut self, made: Vec<Entry>) {
        self.next += made.len() as u64;
        for entry in made {
            self.put(entry);
        }
    }

    /// Notes what a knob read after its write.
    pub fn found(&mut self, n: u64, value: Option<String>) {
        if let Some(entry) = self.list.iter_mut().find(|entry| entry.n == n) {
            entry.found = Some(value);
        }
    }

    /// Forgets changes that are undone.
    pub fn undone(&mut self, numbers: &[u64]) {
        self.list.retain(|entry| !numbers.contains(&entry.n));
    }

    /// The numbers of the changes that `is` such ones.
    pub fn numbers(&self, is: impl Fn(&Change) -> bool) -> Vec<u64> {
        let entries = self.list.iter().filter(|entry| is(&entry.change));
        entries.map(|entry| entry.n).collect()
    }

    /// The lines that lead to these entries.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for Entry { n, change, found } in &self.list {
            let (n, change) = (*n, change.clone());
            lines.push(Line::Change { n, change });
            lines.extend(found.clone().map(|value| Line::Found { n, value }));
        }
        lines
    }

    /// A knob or a file has one entry, however often it is written: what it was before the first write counts.
    fn entry_for(&self, change: Change, next: u64) -> Entry {
        if let Some(known) = self.list.iter().find(|it| it.change == change)
            && matches!(change, Change::Command { .. })
        {
            return known.clone();
        }
        if let Change::Content {
            target,
            expected,
            before,
            ..
        } = &change
            && let Some((n, old, mode)) = self.content(target)
        {
            let change = Change::Content {
                target: target.clone(),
                old,
                expected: expected.clone(),
                before: before.clone(),
                mode,
            };
            return Entry {
                n,
                change,
                found: None,
            };
        }
        if let Change::Knob {
            target, expected, ..
        } = &change
            && let Some(Entry {
                n,
                change: Change::Knob { old, .. },
                ..
            }) = self.knob(target)
        {
            let change = Change::Knob {
                target: target.clone(),
                old: old.clone(),
                expected: expected.clone(),
            };
            return Entry {
                n: *n,
                change,
                found: None,
            };
        }
        Entry {
            n: next,
            change,
            found: None,
        }
    }

    /// The entry of a file: its number, the bytes and the permissions that it had.
    fn content(&self, path: &std::path::Path) -> Option<(u64, Option<Content>, u32)> {
        self.list.iter().find_map(|entry| match &entry.change {
            Change::Content {
                target, old, mode, ..
            } if target == path => Some((entry.n, old.clone(), *mode)),
            _ => None,
        })
    }

    /// Adds an entry, or replaces the one of the same number.
    fn put(&mut self, entry: Entry) {
        match self.list.iter_mut().find(|it| it.n == entry.n) {
            Some(place) => *place = entry,
            None => self.list.push(entry),
        }
    }
}
