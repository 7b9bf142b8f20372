//! What the keeper reads: requests, the journals of dead keepers, the kernel's list of mounts.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::scratch;
use ascar_keeper::journal::{Alone, stale};
use ascar_keeper::protocol::{Lines, Operation, Request};
use ascar_keeper::{catalogue, format, mount_options, mounts};

/// A stream of requests, and as much of each as is checked before the machine is touched.
pub fn requests(bytes: &[u8]) {
    let mut lines = Lines::default();
    for piece in bytes.chunks(7) {
        lines.feed(piece, |line| {
            let Ok(request) = line.map(Request::parse) else {
                return;
            };
            match request.map(|it| it.operation) {
                Ok(Operation::KnobRead { knob } | Operation::KnobWrite { knob, .. }) => {
                    let _ = catalogue::resolve(&knob);
                }
                Ok(Operation::Format(request)) => {
                    let _ = format::command(&request, Path::new("/dev/loop0"), "0");
                }
                Ok(Operation::Mount(request)) => {
                    let _ = mount_options::parse(&request.fs, &request.options);
                }
                _ => {}
            }
        });
    }
}

/// A journal as a keeper that died may have left it.
pub fn journal(bytes: &[u8]) {
    static FOLDER: LazyLock<(PathBuf, Alone)> = LazyLock::new(|| {
        let folder = scratch().join("journal");
        let alone = Alone::wait(&folder).expect("a folder can be made in memory");
        (folder, alone)
    });
    let (folder, alone) = &*FOLDER;
    let path = folder.join("1-1.jsonl");
    std::fs::write(&path, bytes).expect("a file can be written in memory");
    for found in stale(folder, alone, true).expect("the folder can be read") {
        match found {
            Ok(stale) => assert!(stale.journal.entries().len() <= bytes.len()),
            Err(fault) => assert!(!fault.message.is_empty()),
        }
    }
}

/// `/proc/self/mountinfo`.
pub fn mounts(bytes: &[u8]) {
    for line in String::from_utf8_lossy(bytes).lines() {
        let _ = mounts::parse(line);
    }
}
