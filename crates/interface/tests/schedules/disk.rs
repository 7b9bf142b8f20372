//! The disk of a schedule's interface: it may be full, and be damaged.

use ascar_interface::state::{Content, Disk, SLOTS};

/// The interface's disk.
#[derive(Clone, Debug)]
pub struct Slots {
    pub contents: [Content; SLOTS],
    pub full: bool,
}

impl Disk for Slots {
    fn read(&self, slot: usize) -> Content {
        self.contents[slot].clone()
    }

    fn write(&mut self, slot: usize, bytes: &[u8]) -> Result<(), String> {
        if self.full {
            return Err("no space left".to_owned());
        }
        self.contents[slot] = Content::Bytes(bytes.to_vec());
        Ok(())
    }

    fn spoil(&mut self, slot: usize) -> Result<(), String> {
        self.contents[slot] = Content::Bytes(Vec::new());
        Ok(())
    }

    fn name(&self, slot: usize) -> String {
        slot.to_string()
    }
}
