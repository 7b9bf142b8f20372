//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use ascar_arguments::{Arguments, Mistake, Word};

use crate::LoadError;

/// What `ascard load --help` prints; its lines are the options.
pub const HELP: &str = "\
Run a workload on a directory, and report every second how it went, as JSON lines.

Usage: ascard load (--personality NAME | --wml FILE) --dir DIR [--seconds N] [OPTIONS]
       ascard load --list
       ascard load (--personality NAME | --wml FILE) --describe [--scale X] [--threads N]
       ascard load --dir DIR --clean

Exit status: 0 done; 1 the work failed; 2 wrong arguments or a wrong workload; 3 ended early by SIGTERM, with what was
measured reported; 130 interrupted.

Options:
  --personality NAME  Run a built-in workload; --list names them.
  --wml FILE          Run a workload file in Filebench's language; - reads standard input.
  --dir DIR           Make the workload's files in DIR.
  --seconds N         Run for N seconds [default: the run time that the file gives].
  --scale X           Make the data set X times as large as the file says [default: 1].
  --threads N         Run N threads in all, in the file's proportion [default: as many as the file says].
  --rate-per-s R      Let R passes through the flowops arrive a second at random; latencies count from there.
  --seed S            Draw file sizes, places and choices from seed S [default: 1].
  --fill-only         Make the files, and end.
  --no-fill           Run on the files that --fill-only made.
  --reading-ms N      Report every N milliseconds [default: 1000].
  --cdf               Add the latency distribution of each flowop to the summary.
  --record FILE       Write every operation to FILE, as CSV.
  --clean             Remove the files at the end, or those of an earlier load.
  --list              Name the built-in workloads.
  --describe          Print what the workload is, and end.
  -h, --help          Print this help.

Examples:
  ascard load --personality varmail --dir /mnt/test --seconds 60
  ascard load --personality varmail --dir /mnt/test --seconds 60 --rate-per-s 400
  ascard load --wml own.f --describe
  ascard load --personality fileserver --dir /mnt/test --fill-only
  ascard load --dir /mnt/test --clean
";

/// Which workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Built in.
    Personality(String),
    /// A file.
    Wml(PathBuf),
}

/// What to do with the files before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Make them, then run.
    Make,
    /// Make them, and end.
    Only,
    /// They are there.
    Never,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Print [`HELP`].
    Help,
    /// Name the built-in workloads.
    List,
    /// Tell what a workload is.
    Describe(Workload),
    /// Remove what an earlier load made.
    Clean(PathBuf),
    /// Run.
    Run(Workload, RunOptions),
}

/// A workload and how it is changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Where it comes from.
    pub source: Source,
    /// Factor of the data set.
    pub scale: f64,
    /// Threads in all.
    pub threads: Option<u32>,
}

/// How to run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Where.
    pub dir: PathBuf,
    /// How long; the file's own time otherwise.
    pub seconds: Option<f64>,
    /// Passes of all threads that arrive a second; `None`: each begins when the one before has ended.
    pub rate_per_s: Option<f64>,
    /// Seed of everything random.
    pub seed: u64,
    /// What to do with the files before.
    pub fill: Fill,
    /// Time between readings.
    pub reading_ms: u64,
    /// Latency distributions in the summary.
    pub cdf: bool,
    /// Record of operations.
    pub record: Option<PathBuf>,
    /// Remove the files at the end.
    pub clean: bool,
}

/// Options as they came, before they are put together.
#[derive(Default)]
struct Raw {
    personality: Option<String>,
    wml: Option<PathBuf>,
    dir: Option<PathBuf>,
    seconds: Option<f64>,
    scale: Option<f64>,
    threads: Option<u32>,
    rate_per_s: Option<f64>,
    seed: Option<u64>,
    reading_ms: Option<u64>,
    record: Option<PathBuf>,
    flags: Vec<&'static str>,
}

/// Read the command line, without the program's name.
///
/// # Errors
/// An option is unknown, wrong, missing, or does not go with another; the message names it.
pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Command, LoadError> {
    let mut raw = Raw::default();
    let mut words = Arguments::new(HELP, words);
    while let Some(word) = words.next_word()? {
        match word {
            Word::Option("--personality") => raw.personality = Some(words.text()?),
            Word::Option("--wml") => raw.wml = Some(words.text()?.into()),
            Word::Option("--dir") => raw.dir = Some(words.text()?.into()),
            Word::Option("--record") => raw.record = Some(words.text()?.into()),
            Word::Option("--seconds") => raw.seconds = Some(words.number(0.001, 31_622_400.0)?),
            Word::Option("--scale") => raw.scale = Some(words.number(1e-9, 1e6)?),
            Word::Option("--threads") => {
                raw.threads = Some(words.number(1, crate::wml::MOST_THREADS)?);
            }
            Word::Option("--rate-per-s") => {
                raw.rate_per_s = Some(words.number(1e-3, 1e9)?);
            }
            Word::Option("--seed") => raw.seed = Some(words.number(0, u64::MAX)?),
            Word::Option("--reading-ms") => raw.reading_ms = Some(words.number(10, 3_600_000)?),
            Word::Option(flag) => raw.flags.push(flag),
            Word::Value(other) => return Err(words.unknown(other).into()),
        }
    }
    raw.command()
}

impl From<Mistake> for LoadError {
    fn from(Mistake(text): Mistake) -> Self {
        LoadError::Input(text)
    }
}

impl Raw {
    fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    fn command(self) -> Result<Command, LoadError> {
        if self.has("--help") {
            return Ok(Command::Help);
        }
        if self.has("--list") {
            return Ok(Command::List);
        }
        let needs = |text: &str| Err(LoadError::Input(text.into()));
        let source = match (&self.personality, &self.wml) {
            (Some(_), Some(_)) => return needs("--personality and --wml: give one of them"),
            (Some(name), None) => Source::Personality(name.clone()),
            (None, Some(file)) => Source::Wml(file.clone()),
            (None, None) => match &self.dir {
                Some(dir) if self.has("--clean") => return Ok(Command::Clean(dir.clone())),
                _ => {
                    return needs(
                        "--personality or --wml: give one of them; --list names the personalities",
                    );
                }
            },
        };
        let workload = Workload {
            source,
            scale: self.scale.unwrap_or(1.0),
            threads: self.threads,
        };
        if self.has("--describe") {
            return Ok(Command::Describe(workload));
        }
        let fill = match (self.has("--fill-only"), self.has("--no-fill")) {
            (true, true) => return needs("--fill-only and --no-fill: give one of them"),
            (true, false) if self.has("--clean") => {
                return needs("--fill-only and --clean: give one of them");
            }
            (true, false) if self.record.is_some() => {
                return needs("--fill-only and --record: give one of them");
            }
            (true, false) => Fill::Only,
            (false, true) => Fill::Never,
            (false, false) => Fill::Make,
        };
        let Some(dir) = self.dir.clone() else {
            return needs("--dir: give the directory in which files are to be made");
        };
        let options = RunOptions {
            dir,
            seconds: self.seconds,
            rate_per_s: self.rate_per_s,
            seed: self.seed.unwrap_or(1),
            fill,
            reading_ms: self.reading_ms.unwrap_or(1000),
            cdf: self.has("--cdf"),
            record: self.record.clone(),
            clean: self.has("--clean"),
        };
        Ok(Command::Run(workload, options))
    }
}
