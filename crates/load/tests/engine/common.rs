//! Running loads inside the test: a directory of one's own, the command line, the JSON lines.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A directory on tmpfs, where there is one, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("ascar-load-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Write a workload file.
    pub fn wml(&self, text: &str) -> String {
        let file = self.0.join("workload.f");
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    /// Run with `--dir` added; the JSON lines, or the error with its exit status.
    pub fn load(&self, words: &[&str]) -> Result<Vec<Value>, (u8, String)> {
        let dir = self.0.display().to_string();
        let mut all = words.to_vec();
        all.extend(["--dir", &dir]);
        load(&all)
    }

    /// The summary of a run that must succeed.
    pub fn summary(&self, words: &[&str]) -> Value {
        let lines = self
            .load(words)
            .unwrap_or_else(|error| panic!("{words:?}: {error:?}"));
        let last = lines.last().unwrap().clone();
        assert_eq!(last["kind"], "summary", "{words:?}");
        last
    }

    /// Regular files below, but notes and workload files.
    pub fn files(&self) -> usize {
        fn count(path: &Path) -> usize {
            let items = std::fs::read_dir(path).unwrap().map(Result::unwrap);
            items
                .map(|item| {
                    if item.file_type().unwrap().is_dir() {
                        count(&item.path())
                    } else {
                        1
                    }
                })
                .sum()
        }
        let sets = std::fs::read_dir(&self.0).unwrap().map(Result::unwrap);
        sets.filter(|set| set.file_type().unwrap().is_dir())
            .map(|set| count(&set.path()))
            .sum()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn load(words: &[&str]) -> Result<Vec<Value>, (u8, String)> {
    let mut out = Vec::new();
    let done = ascar_load::arguments::parse(words.iter().map(Into::into))
        .and_then(|command| ascar_load::run::command(&command, &mut out));
    match done {
        Ok(0) => {
            let text = String::from_utf8(out).unwrap();
            Ok(text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect())
        }
        Ok(status) => Err((status, String::new())),
        Err(error) => Err((error.status(), error.to_string())),
    }
}

/// Operations of a flowop in a reading or summary.
pub fn ops(line: &Value, flowop: &str) -> f64 {
    line["flowops"][flowop]["ops"]
        .as_f64()
        .unwrap_or_else(|| panic!("no flowop {flowop} in {line}"))
}

/// What holds where the machine lets a load run: on a busy one it may take several attempts.
pub fn sooner_or_later(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut failures = Vec::new();
    while failures.len() < 10 {
        match attempt() {
            Ok(()) => return,
            Err(failure) => failures.push(failure),
        }
    }
    panic!("{failures:#?}");
}
