//! Small files of the kernel, read again and again.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Most of a file that is read.
const BYTES_MAX: usize = 1 << 20;

/// A file that is kept open.
#[derive(Debug)]
pub struct KernelFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl KernelFile {
    /// Opened when first read.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            file: None,
            buffer: Vec::new(),
        }
    }

    /// What is in it now; None where it is not there.
    pub fn read(&mut self) -> Option<&str> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        if self.fill().is_none() {
            self.file = None;
            return None;
        }
        std::str::from_utf8(&self.buffer).ok()
    }

    fn fill(&mut self) -> Option<()> {
        let file = self.file.as_ref()?;
        let mut length = 0;
        loop {
            if self.buffer.len() < length + 4096 {
                self.buffer.resize(length + 4096, 0);
            }
            let count = file
                .read_at(&mut self.buffer[length..], length as u64)
                .ok()?;
            length += count;
            if count == 0 || length >= BYTES_MAX {
                break;
            }
        }
        self.buffer.truncate(length);
        Some(())
    }
}

/// A small file that is read once in a while.
pub fn read(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    File::open(path)
        .ok()?
        .take(BYTES_MAX as u64)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

/// The first word as a number.
pub fn number(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}
