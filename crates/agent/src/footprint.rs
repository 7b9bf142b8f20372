//! Memory: pages of the program that only the start needed are given back to the kernel.

/// All threads share the main thread's heap: each of their own would take memory for little.
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt only stores a number of the allocator's; no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Unmaps the code of this process where it came from files; what runs on is mapped again from the page cache, page by
/// page. Nothing is written and nothing is lost: code is never changed.
pub fn give_back_start_up() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return;
    };
    for (start, length) in maps.lines().filter_map(code) {
        // SAFETY: the range is a whole private mapping of a file, readable and executable but not writable, so that
        // every page of it is read from the file again when it is next needed.
        unsafe {
            libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED);
        }
    }
}

/// Start and length of a mapping of code from a file.
fn code(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, flags) = (words.next()?, words.next()?);
    let path = words.nth(3)?;
    if flags != "r-xp" || !path.starts_with('/') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    Some((
        start,
        usize::from_str_radix(end, 16).ok()?.checked_sub(start)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files_is_given_back() {
        assert_eq!(
            code("1000-3000 r-xp 00001000 fe:01 77 /usr/bin/x"),
            Some((0x1000, 0x2000))
        );
        for other in [
            "1000-3000 r--p 00001000 fe:01 77 /usr/bin/x",
            "1000-3000 rw-p 00001000 fe:01 77 /usr/bin/x",
            "1000-3000 r-xp 00000000 00:00 0 [vdso]",
            "1000-3000 r-xp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(code(other), None, "{other}");
        }
        give_back_start_up();
    }
}
