//! A definition made ready to run: flags, shared state, and which counter each step feeds.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::aio::Pool;
use super::pacer::Pacer;
use super::semaphore::Semaphore;
use super::trace::{Event, Trace};
use crate::LoadError;
use crate::control::Control;
use crate::data::directory::failed;
use crate::data::layout::PathBuffer;
use crate::data::tree::Tree;
use crate::definition::{Definition, Flowop, Kind};
use crate::pattern::Pattern;

/// Longest single read or write; longer ones are done in pieces, between which the end of the load is seen.
pub const CHUNK_BYTES: u64 = 4 << 20;

/// A counter that a finish flowop looks at.
#[derive(Debug, Clone, Copy)]
pub struct Credit {
    /// Which counter.
    pub counter: usize,
    /// Count bytes instead of operations.
    pub bytes: bool,
}

/// A flowop with what running it needs.
#[derive(Debug)]
pub struct Step {
    /// The flowop.
    pub flowop: Flowop,
    /// Flags that it opens files with.
    pub open_flags: i32,
    /// semblock, sempost: the semaphore.
    pub semaphore: usize,
    /// finish*: the counter it looks at.
    pub counter: usize,
    /// Counters that it feeds.
    pub credits: Vec<Credit>,
    /// Limits: the steps of this thread whose work they count.
    pub counted: Vec<usize>,
    /// Limits: the first step of the thread that counts the same, whose account they share.
    pub account: usize,
    /// createfile, deletefile: no flowop does the opposite, so running out of files is the workload's end.
    pub runs_dry: bool,
}

/// Everything that the threads of a load share.
pub struct Plan {
    /// The workload.
    pub definition: Definition,
    /// Steps of each thread group.
    pub steps: Vec<Vec<Step>>,
    /// File sets, in the order of the definition.
    pub trees: Vec<Tree>,
    /// The directory that holds them.
    pub directory: PathBuf,
    /// Seed of all choices.
    pub seed: u64,
    /// Mean time between two arrivals of a pass at each thread; `None`: a pass begins when the one before has ended.
    pub arrival_gap_ns: Option<f64>,
    /// Passes that had arrived, and not begun, when the load ended.
    pub waiting: AtomicU64,
    /// The end.
    pub control: Arc<Control>,
    /// What is written.
    pub pattern: Pattern,
    /// Writes in the background.
    pub aio: Pool,
    /// Semaphores.
    pub semaphores: Vec<Semaphore>,
    /// Counters of finish flowops.
    pub counters: Vec<AtomicU64>,
    /// The event rate.
    pub pacer: Option<Pacer>,
    /// Record of operations.
    pub trace: Option<Trace>,
    /// Operations left out because no file was to be had in time.
    pub starved: AtomicU64,
    /// 1 once all threads may begin.
    pub gate: AtomicU32,
    /// Threads that have not ended.
    pub running: AtomicU32,
}

/// What a plan is made of.
pub struct Parts {
    /// The workload, scaled.
    pub definition: Definition,
    /// Its file sets.
    pub trees: Vec<Tree>,
    /// The directory that holds them.
    pub directory: PathBuf,
    /// Seed of all choices.
    pub seed: u64,
    /// Passes of all threads that arrive a second.
    pub rate_per_s: Option<f64>,
    /// Record of operations.
    pub trace: Option<Trace>,
}

impl Plan {
    /// Make a workload ready.
    #[must_use]
    pub fn new(parts: Parts, control: Arc<Control>) -> Plan {
        let Parts {
            definition,
            trees,
            directory,
            seed,
            rate_per_s,
            trace,
        } = parts;
        let (semaphores, places) = semaphores(&definition);
        let mut counters = 0;
        let mut steps: Vec<Vec<Step>> = Vec::new();
        for (place, group) in definition.groups.iter().enumerate() {
            let step = |(at, flowop): (usize, &Flowop)| {
                step(&definition, flowop, (place, at), &places, &mut counters)
            };
            steps.push(group.flowops.iter().enumerate().map(step).collect());
        }
        credit(&definition, &mut steps);
        let flowops = || definition.groups.iter().flat_map(|group| &group.flowops);
        let writes = flowops().any(|flowop| flowop.kind.writes());
        Plan {
            steps,
            trees,
            directory,
            seed,
            arrival_gap_ns: rate_per_s.map(|rate| f64::from(definition.threads()) * 1e9 / rate),
            waiting: AtomicU64::new(0),
            control,
            pattern: Pattern::new(if writes {
                largest_chunk(&definition, Kind::writes)
            } else {
                0
            }),
            aio: Pool::default(),
            semaphores,
            counters: (0..counters).map(|_| AtomicU64::new(0)).collect(),
            pacer: (definition.event_rate_per_s > 0.0)
                .then(|| Pacer::new(definition.event_rate_per_s)),
            trace,
            starved: AtomicU64::new(0),
            gate: AtomicU32::new(0),
            running: AtomicU32::new(0),
            definition,
        }
    }

    /// An error of an operation on a file.
    #[cold]
    pub fn failed(&self, what: &str, file: (usize, u32), error: &io::Error) -> LoadError {
        let tree = &self.trees[file.0];
        let mut buffer = PathBuffer::new();
        let relative = tree.layout.path(file.1, &mut buffer).to_bytes();
        failed(
            what,
            &self
                .directory
                .join(&tree.name)
                .join(OsStr::from_bytes(relative)),
            error,
        )
    }

    /// Write so many bytes at a place, in chunks. Stops between chunks, with what was written, when the load ends.
    ///
    /// # Errors
    /// The write fails or stops short.
    pub fn write_at(
        &self,
        fd: RawFd,
        file: (usize, u32),
        offset: u64,
        bytes: u64,
        draw: u64,
    ) -> Result<u64, LoadError> {
        let mut done = 0;
        while done < bytes {
            let data = self.pattern.slice(
                draw.wrapping_add(done >> 12),
                (bytes - done).min(CHUNK_BYTES) as usize,
            );
            // SAFETY: `data` is valid for its length; a bad descriptor gives an error.
            let got = unsafe {
                libc::pwrite64(fd, data.as_ptr().cast(), data.len(), (offset + done) as i64)
            };
            if got <= 0 {
                let error = if got == 0 {
                    io::Error::from_raw_os_error(libc::ENOSPC)
                } else {
                    io::Error::last_os_error()
                };
                return Err(self.failed("write", file, &error));
            }
            done += got as u64;
            if done < bytes && self.control.stopped() {
                break;
            }
        }
        Ok(done)
    }

    /// Name and type of an event's flowop, and the name of its file's set.
    pub fn label(&self, group: usize, event: &Event) -> (&str, &str, &str) {
        let flowop = &self.steps[group][event.step].flowop;
        (
            &flowop.name,
            flowop.kind.word(),
            &self.trees[event.file.0].name,
        )
    }

    /// Threads that the aio pool needs: as many as can be pending, within reason.
    #[must_use]
    pub fn aio_threads(&self) -> u32 {
        let begun = |group: &crate::definition::ThreadGroup| -> u64 {
            let aio = group
                .flowops
                .iter()
                .filter(|flowop| flowop.kind == Kind::AioWrite);
            aio.map(|flowop| flowop.iters).sum::<u64>() * u64::from(group.threads)
        };
        self.definition
            .groups
            .iter()
            .map(begun)
            .sum::<u64>()
            .min(64) as u32
    }

    /// Count an operation where a finish flowop looks.
    #[inline]
    pub fn credit(&self, step: &Step, bytes: u64) {
        for credit in &step.credits {
            self.counters[credit.counter].fetch_add(if credit.bytes { bytes } else { 1 }, Relaxed);
        }
    }
}

/// Bytes that one read or write of some kinds may need at once.
#[must_use]
pub fn largest_chunk(definition: &Definition, kinds: impl Fn(Kind) -> bool) -> usize {
    let largest_file = definition
        .filesets
        .iter()
        .map(|set| set.size_bytes.largest())
        .fold(0.0, f64::max);
    let flowops = definition.groups.iter().flat_map(|group| &group.flowops);
    let of = |flowop: &Flowop| {
        let iosize = flowop.iosize_bytes.largest();
        if iosize < 1.0 { largest_file } else { iosize }
    };
    let largest = flowops
        .filter(|flowop| kinds(flowop.kind))
        .map(of)
        .fold(0.0, f64::max);
    largest.min(CHUNK_BYTES as f64) as usize
}

/// A semaphore for each semblock, and where it is.
fn semaphores(definition: &Definition) -> (Vec<Semaphore>, HashMap<(usize, usize), usize>) {
    let (mut list, mut places) = (Vec::new(), HashMap::new());
    for (group_place, group) in definition.groups.iter().enumerate() {
        for (place, flowop) in group.flowops.iter().enumerate() {
            if flowop.kind == Kind::SemBlock {
                places.insert((group_place, place), list.len());
                list.push(Semaphore::new(flowop.highwater));
            }
        }
    }
    (list, places)
}

fn step(
    definition: &Definition,
    flowop: &Flowop,
    at: (usize, usize),
    semaphores: &HashMap<(usize, usize), usize>,
    counters: &mut usize,
) -> Step {
    let semaphore = match flowop.kind {
        Kind::SemBlock => semaphores[&at],
        Kind::SemPost => semaphores[&flowop.target.expect("checked")],
        _ => usize::MAX,
    };
    let mut counter = usize::MAX;
    if matches!(flowop.kind, Kind::FinishOnBytes | Kind::FinishOnCount) {
        counter = *counters;
        *counters += 1;
    }
    let counted = definition.groups[at.0]
        .flowops
        .iter()
        .enumerate()
        .filter(|(place, other)| match flowop.target {
            Some(target) => target == (at.0, *place),
            None if flowop.kind == Kind::OpsLimit => other.kind.is_file_operation(),
            None => other.kind.transfers(),
        });
    let same = |other: &Flowop| other.kind == flowop.kind && other.target == flowop.target;
    let account = definition.groups[at.0].flowops.iter().position(same);
    Step {
        account: account.expect("it is the same as itself"),
        open_flags: open_flags(definition, flowop),
        semaphore,
        counter,
        credits: Vec::new(),
        counted: counted.map(|(place, _)| place).collect(),
        runs_dry: runs_dry(definition, flowop),
        flowop: flowop.clone(),
    }
}

fn open_flags(definition: &Definition, flowop: &Flowop) -> i32 {
    let set = flowop.fileset.map(|place| &definition.filesets[place]);
    let mut flags = libc::O_CLOEXEC
        | match set {
            Some(set) if set.readonly => libc::O_RDONLY,
            Some(set) if set.writeonly => libc::O_WRONLY,
            _ => libc::O_RDWR,
        };
    if flowop.kind == Kind::CreateFile {
        flags |= libc::O_CREAT | libc::O_TRUNC;
    }
    if flowop.directio {
        flags |= libc::O_DIRECT;
    }
    if flowop.dsync {
        // As Filebench: file attributes are flushed too.
        flags |= libc::O_SYNC;
    }
    flags
}

fn runs_dry(definition: &Definition, flowop: &Flowop) -> bool {
    let mut flowops = definition.groups.iter().flat_map(|group| &group.flowops);
    match (flowop.kind, flowop.fileset) {
        // A deletefile without a set removes what its thread has open, which may be of any set.
        (Kind::CreateFile, set) => !flowops.any(|other| {
            other.kind == Kind::DeleteFile && (other.fileset == set || other.fileset.is_none())
        }),
        (Kind::DeleteFile, set) => {
            !flowops.any(|other| other.kind == Kind::CreateFile && other.fileset == set)
        }
        _ => false,
    }
}

/// Tell each step which finish counters it feeds.
fn credit(definition: &Definition, steps: &mut [Vec<Step>]) {
    struct Finish {
        credit: Credit,
        target: Option<(usize, usize)>,
    }
    let finishes: Vec<Finish> = steps
        .iter()
        .flatten()
        .filter(|step| step.counter != usize::MAX)
        .map(|step| Finish {
            credit: Credit {
                counter: step.counter,
                bytes: step.flowop.kind == Kind::FinishOnBytes,
            },
            target: step.flowop.target,
        })
        .collect();
    for (group, row) in definition.groups.iter().enumerate() {
        for (place, flowop) in row.flowops.iter().enumerate() {
            let fits = |bytes: bool| {
                if bytes {
                    flowop.kind.transfers()
                } else {
                    flowop.kind.is_file_operation()
                }
            };
            let mine = finishes.iter().filter(|finish| match finish.target {
                Some(target) => target == (group, place),
                None => fits(finish.credit.bytes),
            });
            steps[group][place].credits = mine.map(|finish| finish.credit).collect();
        }
    }
}
