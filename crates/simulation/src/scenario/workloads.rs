//! What clients do, in the terms of `ascard load`: file sets, thread groups, flowops.

use serde::{Deserialize, Serialize};

use super::describe::{section, words};

section! {
    /// What one client runs; every client of a group runs its own copy.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Workload {
        /// Name that client groups refer to.
        pub name: String,
        /// The file sets it works on.
        pub filesets: Vec<FileSet>,
        /// Its threads.
        pub threads: Vec<ThreadGroup>,
    }
}

section! {
    /// Files that a workload works on.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct FileSet {
        /// Name that flowops refer to.
        pub name: String,
        /// Files.
        #[serde(default = "one")]
        pub entries: u32,
        /// Mean size of a file.
        pub size_mib: f64,
        /// Shape of the gamma distribution of sizes; 0: all alike (Filebench: cvar-gamma, 1.5).
        #[serde(default)]
        pub size_gamma: f64,
        /// Share of the files that exist at the start, in percent.
        #[serde(default = "all_percent")]
        pub prealloc_percent: f64,
        /// Mean size of the files that exist at the start, where files grow while the workload runs; without it
        /// `size_mib`.
        #[serde(default)]
        pub prealloc_size_mib: Option<f64>,
        /// Whether all clients work on this one set; otherwise each has its own.
        #[serde(default)]
        pub shared: bool,
    }
}

fn one() -> u32 {
    1
}

fn all_percent() -> f64 {
    100.0
}

section! {
    /// Threads that are alike.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ThreadGroup {
        /// How many on each client.
        #[serde(default = "one")]
        pub instances: u32,
        /// What each does, in turn and for ever.
        pub flowops: Vec<Flowop>,
        /// Passes through the flowops that arrive a second at these threads of each client, in a Poisson process each,
        /// whether or not the one before has ended (an open loop); without it, a pass begins when the one before has
        /// ended.
        #[serde(default)]
        pub rate_per_s: Option<f64>,
    }
}

section! {
    /// One step of a thread.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Flowop {
        /// What is done.
        pub op: Operation,
        /// The file set, for what works on files; it may be left out where a workload has one only.
        #[serde(default)]
        pub fileset: Option<String>,
        /// Bytes an operation (for `appendfilerand`: at most, uniform); 1 MiB unless told.
        #[serde(default = "default_iosize_kib")]
        pub iosize_kib: f64,
        /// For `read` and `write`: at a random place of the file, on whole multiples of the size; otherwise in sequence.
        #[serde(default)]
        pub random: bool,
        /// Past the client's cache: the thread waits until a server has answered for every byte.
        #[serde(default)]
        pub directio: bool,
        /// For `read` and `write`: a file for each thread (thread number modulo entries); otherwise one at random.
        #[serde(default)]
        pub file_per_thread: bool,
        /// Times in a row.
        #[serde(default = "one")]
        pub iters: u32,
        /// For `read` and `write`: percentage of the times that this step is done at all; a ratio of two steps.
        #[serde(default = "all_percent")]
        pub probability_percent: f64,
        /// For `delay`: how long.
        #[serde(default)]
        pub value_s: f64,
    }
}

fn default_iosize_kib() -> f64 {
    1024.0
}

words! {
    /// What a flowop does. Names are Filebench's, besides `barrier` and `sync`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Operation {
        /// Read `iosize_kib`; in sequence from the start again at the end.
        Read,
        /// Write `iosize_kib`; in sequence from the start again at the end.
        Write,
        /// Create the next file that does not exist.
        CreateFile,
        /// Open a random file that exists.
        OpenFile,
        /// Close the thread's open file.
        CloseFile,
        /// Write a file's whole size, `iosize_kib` a time.
        WriteWholeFile,
        /// Read the whole open file, `iosize_kib` a time.
        ReadWholeFile,
        /// Add `iosize_kib` to the open file; with `shared` sets each client adds its part in turn of client numbers.
        AppendFile,
        /// Add up to `iosize_kib` to the open file.
        AppendFileRand,
        /// Delete a random file that exists.
        DeleteFile,
        /// Look at a random file that exists.
        StatFile,
        /// Compute for `value_s`.
        Delay,
        /// Wait until every thread of this workload on every client has come here (MPI_Barrier).
        Barrier,
        /// Wait until all that the client has written has reached the servers.
        Sync,
    }
}

impl Operation {
    /// Whether it reads or writes file data.
    #[must_use]
    pub fn is_on_data(self) -> bool {
        matches!(
            self,
            Operation::Read
                | Operation::Write
                | Operation::ReadWholeFile
                | Operation::WriteWholeFile
                | Operation::AppendFile
                | Operation::AppendFileRand
        )
    }

    /// Its name in scenarios.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::CreateFile => "createfile",
            Operation::OpenFile => "openfile",
            Operation::CloseFile => "closefile",
            Operation::WriteWholeFile => "writewholefile",
            Operation::ReadWholeFile => "readwholefile",
            Operation::AppendFile => "appendfile",
            Operation::AppendFileRand => "appendfilerand",
            Operation::DeleteFile => "deletefile",
            Operation::StatFile => "statfile",
            Operation::Delay => "delay",
            Operation::Barrier => "barrier",
            Operation::Sync => "sync",
        }
    }
}
