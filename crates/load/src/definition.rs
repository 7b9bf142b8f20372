//! What a workload is, after its file was read and checked: file sets, thread groups, flowops.

use crate::quantity::Quantity;

/// A workload, checked: every reference resolves, every attribute has its type and lies in its range.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// File sets, in the order they were defined.
    pub filesets: Vec<FileSet>,
    /// Thread groups, in the order they were defined.
    pub groups: Vec<ThreadGroup>,
    /// Events a second for opslimit, iopslimit, bwlimit; 0 means no limit.
    pub event_rate_per_s: f64,
    /// The file's own `run` time, if it has one.
    pub run_s: Option<f64>,
}

/// A set of files in a tree of directories.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSet {
    /// Name, also of its top directory.
    pub name: String,
    /// Size of a file, drawn once a file.
    pub size_bytes: Quantity,
    /// Files that the set can hold.
    pub entries: u64,
    /// Mean entries a directory.
    pub dirwidth: f64,
    /// Shape of the gamma distribution of width and depth; 0 makes both fixed.
    pub dirgamma: f64,
    /// Share of the files that exist before the run, in percent.
    pub prealloc_percent: f64,
    /// Keep files of an earlier fill that still fit.
    pub reuse: bool,
    /// Files are opened for reading only.
    pub readonly: bool,
    /// Files are opened for writing only.
    pub writeonly: bool,
}

impl FileSet {
    /// Files that exist when the run begins.
    #[must_use]
    pub fn prealloc_files(&self) -> u64 {
        (self.entries as f64 * self.prealloc_percent / 100.0).round() as u64
    }

    /// Expected bytes of the files that exist when the run begins.
    #[must_use]
    pub fn expected_bytes(&self) -> f64 {
        self.prealloc_files() as f64 * self.size_bytes.mean()
    }
}

/// Threads that all run the same loop of flowops.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadGroup {
    /// Name of its process.
    pub process: String,
    /// Name of the thread.
    pub name: String,
    /// How many threads: instances of the process times instances of the thread.
    pub threads: u32,
    /// The loop.
    pub flowops: Vec<Flowop>,
}

/// What a flowop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Create a file of the set that does not exist, and open it.
    CreateFile,
    /// Open a file of the set that exists.
    OpenFile,
    /// Close an open file.
    CloseFile,
    /// Remove a file of the set that nobody has open, or the one open at `fd`.
    DeleteFile,
    /// Ask for the attributes of a file.
    StatFile,
    /// Flush an open file to stable storage.
    Fsync,
    /// Flush every file of the set that this thread has open.
    FsyncSet,
    /// Read a file from start to end.
    ReadWholeFile,
    /// Write a file from start to its full size.
    WriteWholeFile,
    /// Append `iosize` bytes.
    AppendFile,
    /// Append between 1 and `iosize` bytes.
    AppendFileRand,
    /// Read `iosize` bytes, next in sequence or at random.
    Read,
    /// Write `iosize` bytes, next in sequence or at random.
    Write,
    /// Begin a write of `iosize` bytes and go on.
    AioWrite,
    /// Wait for all writes that this thread began.
    AioWait,
    /// End the run after so many operations.
    FinishOnCount,
    /// End the run after so many bytes.
    FinishOnBytes,
    /// Sleep.
    Delay,
    /// Keep to the event rate, one event a time.
    EventLimit,
    /// Compute for so many steps, touching no file.
    Hog,
    /// Keep to the event rate, one event an operation.
    OpsLimit,
    /// Keep to the event rate, one event a read or write.
    IopsLimit,
    /// Keep to the event rate, one event a MiB.
    BwLimit,
    /// Wait until so many posts came.
    SemBlock,
    /// Post to a semblock.
    SemPost,
}

/// Every kind with its word in the language.
pub const KINDS: [(&str, Kind); 25] = [
    ("aiowait", Kind::AioWait),
    ("aiowrite", Kind::AioWrite),
    ("appendfile", Kind::AppendFile),
    ("appendfilerand", Kind::AppendFileRand),
    ("bwlimit", Kind::BwLimit),
    ("closefile", Kind::CloseFile),
    ("createfile", Kind::CreateFile),
    ("delay", Kind::Delay),
    ("deletefile", Kind::DeleteFile),
    ("eventlimit", Kind::EventLimit),
    ("finishonbytes", Kind::FinishOnBytes),
    ("finishoncount", Kind::FinishOnCount),
    ("fsync", Kind::Fsync),
    ("fsyncset", Kind::FsyncSet),
    ("hog", Kind::Hog),
    ("iopslimit", Kind::IopsLimit),
    ("openfile", Kind::OpenFile),
    ("opslimit", Kind::OpsLimit),
    ("read", Kind::Read),
    ("readwholefile", Kind::ReadWholeFile),
    ("semblock", Kind::SemBlock),
    ("sempost", Kind::SemPost),
    ("statfile", Kind::StatFile),
    ("write", Kind::Write),
    ("writewholefile", Kind::WriteWholeFile),
];

impl Kind {
    /// The kind's word in the language.
    #[must_use]
    pub fn word(self) -> &'static str {
        KINDS
            .iter()
            .find(|(_, kind)| *kind == self)
            .expect("every kind is listed")
            .0
    }

    /// Whether it works on files, and so counts in totals and latencies.
    #[must_use]
    pub fn is_file_operation(self) -> bool {
        !matches!(
            self,
            Kind::AioWait
                | Kind::FinishOnCount
                | Kind::FinishOnBytes
                | Kind::Delay
                | Kind::EventLimit
                | Kind::Hog
                | Kind::OpsLimit
                | Kind::IopsLimit
                | Kind::BwLimit
                | Kind::SemBlock
                | Kind::SemPost
        )
    }

    /// Whether it reads file data.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, Kind::Read | Kind::ReadWholeFile)
    }

    /// Whether it writes file data.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(
            self,
            Kind::Write
                | Kind::AioWrite
                | Kind::WriteWholeFile
                | Kind::AppendFile
                | Kind::AppendFileRand
        )
    }

    /// Whether it moves data through an open file, and so opens one where none is open.
    #[must_use]
    pub fn transfers(self) -> bool {
        self.reads() || self.writes()
    }
}

/// One step of a thread's loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Flowop {
    /// What it does.
    pub kind: Kind,
    /// Name, unique in the workload.
    pub name: String,
    /// File set, by its place in [`Definition::filesets`].
    pub fileset: Option<usize>,
    /// Number of the open file it works on; `None` where the file does not say.
    pub fd: Option<usize>,
    /// writewholefile: take the size of the file open here.
    pub srcfd: Option<usize>,
    /// Bytes of one operation; 0 means the whole file.
    pub iosize_bytes: Quantity,
    /// delay: seconds; finish*: count or bytes; hog: steps; sem*: posts.
    pub value: Quantity,
    /// Times in a row.
    pub iters: u64,
    /// The flowop that a limit, finish or post looks at, as (group, flowop).
    pub target: Option<(usize, usize)>,
    /// Random position instead of the next in sequence.
    pub random: bool,
    /// Bypass the page cache.
    pub directio: bool,
    /// Each write waits for stable storage.
    pub dsync: bool,
    /// Go round the files of the set, one an operation.
    pub opennext: bool,
    /// Positions stay below this; 0 means the file's size. For appends: start over at this size.
    pub workingset_bytes: u64,
    /// semblock: how far posters may run ahead when they block.
    pub highwater: u64,
    /// sempost: wait while the target is behind.
    pub blocking: bool,
}

impl Definition {
    /// Whether some flowop of one of these kinds works on the file set.
    ///
    /// A flowop without a file set of its own works on files opened by others of its thread.
    #[must_use]
    pub fn set_has(&self, fileset: usize, kinds: &[Kind]) -> bool {
        self.groups.iter().any(|group| {
            group
                .flowops
                .iter()
                .any(|f| kinds.contains(&f.kind) && f.fileset == Some(fileset))
        })
    }

    /// All threads.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.groups.iter().map(|group| group.threads).sum()
    }

    /// Expected bytes of all file sets when the run begins.
    #[must_use]
    pub fn expected_bytes(&self) -> f64 {
        self.filesets.iter().map(FileSet::expected_bytes).sum()
    }
}
