//! Processes of a load that outlive the client that started them.
//!
//! A client ends its load itself. One that is killed cannot: what it has started may go on for hours on a file system
//! that is to be unmounted, and keep its device busy.

use std::fs::{read_dir, read_link};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::processes;

/// The variable that clients set in the environment of a load.
const VARIABLE: &[u8] = b"ASCAR_LOAD=";
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// Kills the load that works below a directory, also what it starts meanwhile. Processes of others are left alone.
pub fn kill_below(place: &Path) {
    let started = Instant::now();
    loop {
        let found = below(place);
        if found.is_empty() || started.elapsed() > PATIENCE {
            return;
        }
        for pid in found {
            let _ = kill(pid, Signal::SIGKILL);
        }
        std::thread::sleep(LOOK);
    }
}

fn below(place: &Path) -> Vec<Pid> {
    processes::all()
        .into_iter()
        .filter(|pid| processes::has_variable(*pid, |it| it.starts_with(VARIABLE)))
        .filter(|pid| works_below(&processes::folder(*pid), place))
        .map(Pid::from_raw)
        .collect()
}

/// Its working directory or one of its files is there.
fn works_below(process: &Path, place: &Path) -> bool {
    let is_below = |link: &Path| read_link(link).is_ok_and(|it| it.starts_with(place));
    is_below(&process.join("cwd"))
        || read_dir(process.join("fd"))
            .is_ok_and(|files| files.flatten().any(|file| is_below(&file.path())))
}
