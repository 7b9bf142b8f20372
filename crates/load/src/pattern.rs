//! What is written: random bytes that no file system can compress, shared by all threads, page-aligned.

use ascar_random::Random;

/// Alignment that direct I/O may ask for.
pub const ALIGNMENT: usize = 4096;
/// How far into the bytes a write may begin, in alignments, so that not all writes carry the same data.
const STARTS: u64 = 64;

/// Page-aligned memory, straight from the kernel: an allocator would write zeros to all of it at once.
pub struct Aligned {
    start: std::ptr::NonNull<u8>,
    length: usize,
}

// SAFETY: plain memory without interior mutability; shared access only reads.
unsafe impl Send for Aligned {}
// SAFETY: as above.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// Zeroed memory of at least this length; untouched pages take no room.
    #[must_use]
    pub fn new(length: usize) -> Aligned {
        let length = length.max(ALIGNMENT).next_multiple_of(ALIGNMENT);
        let (rights, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a fresh mapping touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, rights, kind, -1, 0) };
        match std::ptr::NonNull::new(start.cast::<u8>()) {
            Some(bytes) if start != libc::MAP_FAILED => Aligned {
                start: bytes,
                length,
            },
            _ => {
                let layout = std::alloc::Layout::from_size_align(length, ALIGNMENT)
                    .expect("buffers are far below the address space");
                std::alloc::handle_alloc_error(layout)
            }
        }
    }

    /// The memory.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is mapped, zeroed by the kernel, and so long.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// The memory, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nobody borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Random bytes to write from.
pub struct Pattern {
    memory: Aligned,
    chunk: usize,
}

impl Pattern {
    /// Bytes for writes of up to `chunk` each.
    #[must_use]
    pub fn new(chunk: usize) -> Pattern {
        let chunk = chunk.next_multiple_of(ALIGNMENT);
        let mut memory = Aligned::new(chunk + (STARTS as usize - 1) * ALIGNMENT);
        let mut random = Random::of(0xDA7A, &[]);
        for word in memory.bytes_mut().as_chunks_mut::<8>().0 {
            *word = random.draw().to_le_bytes();
        }
        Pattern { memory, chunk }
    }

    /// Up to a chunk of bytes; `start` chooses which.
    #[inline]
    #[must_use]
    pub fn slice(&self, start: u64, length: usize) -> &[u8] {
        let from = (start % STARTS) as usize * ALIGNMENT;
        &self.memory.bytes()[from..from + length.min(self.chunk)]
    }
}
