//! The disk of a schedule's interface, and the thread that waits for it: it may be full, slow, fail, and be damaged.

use ascar_interface::config::Mode;
use ascar_interface::state::{Content, Disk, Draft, Failure, Outcome, Recalled, SLOTS, Slots};

/// The interface's disk.
#[derive(Clone, Debug)]
pub struct Contents {
    pub contents: [Content; SLOTS],
    pub full: bool,
    /// Writes fail; are they done all the same?
    pub failing: Option<bool>,
    /// The database beside the slots notes that one was written.
    pub is_noted: bool,
}

impl Contents {
    pub fn new() -> Self {
        Self {
            contents: [Content::Missing, Content::Missing],
            full: false,
            failing: None,
            is_noted: false,
        }
    }
}

impl Disk for Contents {
    fn read(&self, slot: usize) -> Content {
        self.contents[slot].clone()
    }

    fn write(&mut self, slot: usize, bytes: &[u8]) -> Result<(), Failure> {
        let failure = |why: &str, is_done_perhaps| Failure {
            why: why.to_owned(),
            is_done_perhaps,
        };
        if self.full {
            return Err(failure("no space left", false));
        }
        if self.failing != Some(false) {
            self.contents[slot] = Content::Bytes(bytes.to_vec());
        }
        match self.failing {
            None => {
                self.is_noted = true;
                Ok(())
            }
            // Nobody knows whether it was done.
            Some(_) => Err(failure("input/output error", true)),
        }
    }

    fn spoil(&mut self, slot: usize) -> Result<(), String> {
        self.contents[slot] = Content::Bytes(Vec::new());
        Ok(())
    }

    fn name(&self, slot: usize) -> String {
        slot.to_string()
    }
}

/// The thread that writes, and its slots.
pub struct Thread {
    pub slots: Slots<Contents>,
    /// The newest state that waits, and the one that is being written.
    pub waiting: Option<Draft>,
    pub writing: Option<Draft>,
}

impl Thread {
    pub fn start(disk: Contents) -> (Self, Recalled) {
        let was_written = disk.is_noted;
        let (slots, recalled) = Slots::open(disk, Mode::Automatic, was_written);
        let thread = Self {
            slots,
            waiting: None,
            writing: None,
        };
        (thread, recalled)
    }

    /// Takes the state that waits, where the disk is idle. Returns whether a write has begun.
    pub fn begin(&mut self) -> bool {
        if self.writing.is_some() {
            return false;
        }
        self.writing = self.waiting.take();
        self.writing.is_some()
    }

    /// The disk has ended its write.
    pub fn end(&mut self) -> Outcome {
        let draft = self.writing.take().expect("a write has begun");
        let kept = self.slots.keep(&draft);
        let number = draft.number;
        Outcome { number, kept }
    }

    /// The interface dies. What the disk was doing is done or not.
    pub fn die(mut self, is_done: bool) -> Contents {
        if is_done && self.writing.is_some() {
            self.end();
        }
        self.slots.into_disk()
    }
}
