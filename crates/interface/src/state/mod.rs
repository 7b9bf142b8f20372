//! What a new start of the interface must know, in two slots that are written in turns.
//!
//! A slot holds a generation number, a checksum and the state. A write replaces the older slot as a whole, so that a
//! loss of power leaves both slots readable: one that is not readable is damaged, and may have said that the session
//! is killed. So a session is killed unless everything that is there can be read ([`Slots::open`]), and a kill that
//! cannot be written makes a slot unreadable ([`Slots::keep`]).
//!
//! A disk may take minutes for a write, so that a thread of its own waits for it ([`StateWriter`]).

mod files;
mod writer;

pub use self::files::{Files, read};
pub use self::writer::{Outcome, StateWriter};

use crate::config::Mode;

/// How many slots there are.
pub const SLOTS: usize = 2;
/// Of the form of a slot.
const VERSION: &str = "1";
const MAGIC: &str = "ascar-interface-state";

/// What lies in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing was ever written.
    Missing,
    /// Something that cannot be read, and why.
    Unreadable(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A write that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub why: String,
    /// The slot may have what was written all the same; otherwise it is as it was.
    pub is_done_perhaps: bool,
}

/// How careful a new start is with a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caution {
    /// It does nothing.
    pub killed: bool,
    /// What it does otherwise.
    pub mode: Mode,
}

/// A state that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Later ones have a higher number, and say all that is to be said.
    pub number: u64,
    /// The state.
    pub text: String,
    /// What it means for a new start.
    pub caution: Caution,
}

/// Where the slots lie.
pub trait Disk {
    /// What is in a slot.
    fn read(&self, slot: usize) -> Content;
    /// Replaces a slot as a whole; it is on the device when this returns.
    ///
    /// # Errors
    /// Why it could not be written, and whether it may be written all the same.
    fn write(&mut self, slot: usize, bytes: &[u8]) -> Result<(), Failure>;
    /// Makes a slot unreadable; this needs no space.
    ///
    /// # Errors
    /// Why it could not.
    fn spoil(&mut self, slot: usize) -> Result<(), String>;
    /// The slot's name for people.
    fn name(&self, slot: usize) -> String;
}

/// What a start finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recalled {
    /// The newest state that can be read; none on the first start.
    pub text: Option<String>,
    /// What cannot be read: then the session is killed.
    pub damage: Option<String>,
}

/// The slots.
#[derive(Debug)]
pub struct Slots<D> {
    disk: D,
    /// Of the last write; none before the first.
    generation: Option<u64>,
    /// What was written last, where that is on the device.
    written: Option<String>,
    /// The least careful mode that a new start may begin in.
    mode: Mode,
}

impl<D: Disk> Slots<D> {
    /// Reads the slots. `mode`: a new start begins in no less careful one. `was_written`: somebody remembers that a state
    /// was written here, so that two missing slots are no first start.
    pub fn open(disk: D, mode: Mode, was_written: bool) -> (Self, Recalled) {
        let found: Vec<Content> = (0..SLOTS).map(|slot| disk.read(slot)).collect();
        let mut newest: Option<(u64, String)> = None;
        let mut damage = Vec::new();
        for (slot, content) in found.iter().enumerate() {
            match content {
                Content::Missing => {}
                Content::Unreadable(why) => damage.push(format!("{}: {why}", disk.name(slot))),
                Content::Bytes(bytes) => match decode(slot, bytes) {
                    Err(why) => damage.push(format!("{}: {why}", disk.name(slot))),
                    Ok(one) => newest = newest.max(Some(one)),
                },
            }
        }
        if was_written && newest.is_none() && damage.is_empty() {
            damage.push(format!(
                "{} and {}: are missing, and were written before",
                disk.name(0),
                disk.name(1)
            ));
        }
        let generation = newest.as_ref().map(|it| it.0);
        // The slot of the generation before must be there, and be of that generation.
        if let Some(before) = generation.and_then(|it| it.checked_sub(1))
            && damage.is_empty()
        {
            let slot = slot_of(before);
            let is_whole = matches!(&found[slot], Content::Bytes(bytes)
                if decode(slot, bytes).is_ok_and(|it| it.0 == before));
            if !is_whole {
                damage.push(format!(
                    "{}: generation {before} is missing",
                    disk.name(slot)
                ));
            }
        }
        let recalled = Recalled {
            text: newest.map(|it| it.1),
            damage: (!damage.is_empty()).then(|| damage.join("; ")),
        };
        let slots = Self {
            disk,
            generation,
            written: None,
            mode,
        };
        (slots, recalled)
    }

    /// Where they lie.
    pub fn disk(&mut self) -> &mut D {
        &mut self.disk
    }

    /// The same, without them.
    pub fn into_disk(self) -> D {
        self.disk
    }

    /// Writes a state. Where it makes a new start more careful and cannot be written, a slot is made unreadable instead:
    /// the next start is killed all the same.
    ///
    /// # Errors
    /// Why it could not be written, and what the next start will take it for.
    pub fn keep(&mut self, draft: &Draft) -> Result<(), String> {
        let Draft { text, caution, .. } = draft;
        if self.written.as_deref() == Some(text) {
            return Ok(());
        }
        let next = self.generation.map_or(0, |it| it + 1);
        let slot = slot_of(next);
        let Failure {
            why,
            is_done_perhaps,
        } = match self.disk.write(slot, &encode(next, text)) {
            Ok(()) => {
                self.generation = Some(next);
                self.written = Some(text.clone());
                self.mode = caution.mode;
                return Ok(());
            }
            Err(failure) => failure,
        };
        self.written = None;
        let error = format!("{}: {why}", self.disk.name(slot));
        let is_more_careful = caution.killed || caution.mode < self.mode;
        if !is_more_careful {
            if is_done_perhaps {
                self.mode = self.mode.max(caution.mode);
            }
            return Err(error);
        }
        let spoilt = self.disk.spoil(slot);
        match spoilt.or_else(|_| self.disk.spoil(slot_of(next + 1))) {
            Ok(()) => Err(format!("{error}: an unreadable state stands for the kill")),
            Err(again) => Err(format!(
                "{error}; {again}: a new start will not know of the kill"
            )),
        }
    }
}

fn slot_of(generation: u64) -> usize {
    (generation % SLOTS as u64) as usize
}

/// FNV-1a: each step keeps different states apart, so that a change of one byte always shows.
fn checksum(generation: u64, text: &str) -> u64 {
    let bytes = generation.to_le_bytes();
    let bytes = bytes.iter().chain(text.as_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn encode(generation: u64, text: &str) -> Vec<u8> {
    let sum = checksum(generation, text);
    let length = text.len();
    format!("{MAGIC} {VERSION} {generation} {sum:016x} {length}\n{text}").into_bytes()
}

/// The generation and the state of a slot, or what is wrong with it.
fn decode(slot: usize, bytes: &[u8]) -> Result<(u64, String), String> {
    let damaged = || "is damaged".to_owned();
    let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
    let (head, text) = text.split_once('\n').ok_or_else(damaged)?;
    let words: Vec<&str> = head.split(' ').collect();
    let [MAGIC, version, generation, sum, length] = words[..] else {
        return Err(damaged());
    };
    if version != VERSION {
        return Err(format!(
            "is of version {version:?}: this interface knows {VERSION}"
        ));
    }
    let generation: u64 = generation.parse().map_err(|_| damaged())?;
    let is_whole = length.parse() == Ok(text.len())
        && sum == format!("{:016x}", checksum(generation, text))
        && slot_of(generation) == slot;
    is_whole
        .then(|| (generation, text.to_owned()))
        .ok_or_else(damaged)
}

#[cfg(test)]
mod tests;
