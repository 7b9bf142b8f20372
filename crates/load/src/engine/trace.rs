//! A record of every operation on files, as CSV: `time_s,thread,flowop,type,file,offset,bytes,latency_us`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;

use crate::LoadError;

/// One operation.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// When it began, on the monotonic clock.
    pub begun_ns: u64,
    /// How long it took.
    pub nanos: u64,
    /// The flowop, by its place in the thread's loop.
    pub step: usize,
    /// The file, as (set, number).
    pub file: (usize, u32),
    /// First byte.
    pub offset: u64,
    /// Bytes read or written.
    pub bytes: u64,
}

/// The file that the record goes to; threads hand over whole batches.
pub struct Trace {
    out: Mutex<BufWriter<File>>,
    start_ns: u64,
}

/// Columns of the record.
pub const HEADER: &str = "time_s,thread,flowop,type,file,offset,bytes,latency_us";

impl Trace {
    /// Make a record, without any operation yet.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> Result<Trace, LoadError> {
        let refused = |e: std::io::Error| {
            LoadError::Input(format!(
                "--record: {} cannot be written ({e}); choose another file",
                path.display()
            ))
        };
        let mut out = BufWriter::new(File::create(path).map_err(refused)?);
        writeln!(out, "{HEADER}").map_err(refused)?;
        Ok(Trace {
            out: Mutex::new(out),
            start_ns: 0,
        })
    }

    /// The record, with times from this instant on.
    #[must_use]
    pub fn since(self, start_ns: u64) -> Trace {
        Trace { start_ns, ..self }
    }

    /// Append a batch of one thread. `label` gives a step's flowop and type, and a file's name.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn append<'a>(
        &self,
        thread: usize,
        events: &mut Vec<Event>,
        label: impl Fn(&Event) -> (&'a str, &'a str, &'a str),
    ) -> Result<(), LoadError> {
        let mut text = String::with_capacity(events.len() * 64);
        for event in events.drain(..) {
            use std::fmt::Write;
            let (flowop, kind, set) = label(&event);
            let seconds = event.begun_ns.saturating_sub(self.start_ns) as f64 / 1e9;
            let _ = writeln!(
                text,
                "{seconds:.9},{thread},{flowop},{kind},{set}/{},{},{},{:.3}",
                event.file.1,
                event.offset,
                event.bytes,
                event.nanos as f64 / 1e3
            );
        }
        let mut out = self.out.lock().expect("no panic while held");
        out.write_all(text.as_bytes()).map_err(|e| unwritten(&e))
    }

    /// Write what is left.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn finish(&self) -> Result<(), LoadError> {
        let flushed = self.out.lock().expect("no panic while held").flush();
        flushed.map_err(|e| unwritten(&e))
    }
}

fn unwritten(error: &std::io::Error) -> LoadError {
    LoadError::Work(format!(
        "cannot write the record: {error}; give --record a file with more room, or record for less long"
    ))
}
