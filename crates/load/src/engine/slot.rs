//! A file that a thread has open.

use std::os::fd::RawFd;

/// An open file. Closing is explicit, because it is an operation that is timed.
#[derive(Debug, Clone, Copy)]
pub struct OpenFile {
    /// Descriptor.
    pub fd: RawFd,
    /// Its set, by place.
    pub tree: usize,
    /// Its number in the set.
    pub entry: u32,
    /// Where the next sequential operation begins.
    pub position: u64,
    /// Opened to bypass the page cache.
    pub direct: bool,
    /// Removed while open: it is no longer this thread's to release.
    pub removed: bool,
}

/// Files that an `opennext` flowop goes round, opened as they are reached.
#[derive(Debug, Default)]
pub struct Ring {
    /// Open files, by place.
    pub files: Vec<Option<OpenFile>>,
    /// Next place.
    pub next: usize,
}

/// A place where a thread keeps an open file.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// Slot `fd`.
    Slot(usize),
    /// A place in the ring of a step.
    Ring(usize, usize),
}
