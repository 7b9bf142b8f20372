//! The command line.

use std::path::PathBuf;

use crate::LoadError;

/// What to print for `--help`.
pub const USAGE: &str = "\
Run a workload on a directory, and tell each second how it went, as JSON lines.

Usage: ascard load (--personality NAME | --wml FILE) --dir DIR [--seconds N] [options]
       ascard load --list
       ascard load (--personality NAME | --wml FILE) --describe [--scale X] [--threads N]
       ascard load --dir DIR --clean

  --personality NAME  a built-in workload; --list names them
  --wml FILE          a workload file in Filebench's language; - reads standard input
  --dir DIR           where its files are made
  --seconds N         how long to run (default: the run time of the file)
  --scale X           size of the data set as a multiple of the file's (default 1)
  --threads N         threads in all (default: the file's), shared out in its proportion
  --seed S            seed of file sizes, places and choices (default 1)
  --fill-only         make the files and end
  --no-fill           run on files that --fill-only made
  --reading-ms N      time between readings (default 1000)
  --cdf               give the summary the latency distribution of each flowop
  --record FILE       write every operation to FILE, as CSV
  --clean             remove the files at the end, or those of an earlier load
  --list              name the built-in workloads
  --describe          tell what the workload is, and end
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
    /// Print [`USAGE`].
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
    seed: Option<u64>,
    reading_ms: Option<u64>,
    record: Option<PathBuf>,
    flags: Vec<&'static str>,
}

const FLAGS: [&str; 8] = [
    "--cdf",
    "--clean",
    "--describe",
    "--fill-only",
    "--help",
    "-h",
    "--list",
    "--no-fill",
];
const OPTIONS: [&str; 9] = [
    "--dir",
    "--personality",
    "--reading-ms",
    "--record",
    "--scale",
    "--seconds",
    "--seed",
    "--threads",
    "--wml",
];

/// Read the command line, without the program's name.
///
/// # Errors
/// An option is unknown, wrong, missing, or does not go with another; the message names it.
pub fn parse(args: &[String]) -> Result<Command, LoadError> {
    let mut raw = Raw::default();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if let Some(flag) = FLAGS.iter().find(|flag| *flag == word) {
            raw.flags.push(flag);
            continue;
        }
        let (name, inline) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        if !OPTIONS.contains(&name) {
            let known: Vec<&str> = OPTIONS.iter().chain(&FLAGS).copied().collect();
            return Err(LoadError::Input(format!(
                "'{word}': no such option; known: {}",
                known.join(", ")
            )));
        }
        let value = inline.or_else(|| rest.next().cloned());
        let value =
            value.ok_or_else(|| LoadError::Input(format!("{name}: needs a value after it")))?;
        raw.set(name, &value)?;
    }
    raw.command()
}

/// Put a value where it belongs, once.
fn once<T>(name: &str, place: &mut Option<T>, value: T) -> Result<(), LoadError> {
    if place.replace(value).is_some() {
        return Err(LoadError::Input(format!("{name}: given twice")));
    }
    Ok(())
}

/// A number within a range.
fn number<T>(name: &str, text: &str, low: T, high: T) -> Result<T, LoadError>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display + Copy,
{
    match text.parse::<T>() {
        Ok(value) if value >= low && value <= high => Ok(value),
        _ => Err(LoadError::Input(format!(
            "{name}: must be a number between {low} and {high}, but is '{text}'"
        ))),
    }
}

impl Raw {
    fn set(&mut self, name: &str, value: &str) -> Result<(), LoadError> {
        match name {
            "--personality" => once(name, &mut self.personality, value.to_owned()),
            "--wml" => once(name, &mut self.wml, value.into()),
            "--dir" => once(name, &mut self.dir, value.into()),
            "--record" => once(name, &mut self.record, value.into()),
            "--seconds" => once(
                name,
                &mut self.seconds,
                number(name, value, 0.001, 31_622_400.0)?,
            ),
            "--scale" => once(name, &mut self.scale, number(name, value, 1e-9, 1e6)?),
            "--threads" => once(
                name,
                &mut self.threads,
                number(name, value, 1, crate::wml::MOST_THREADS)?,
            ),
            "--seed" => once(name, &mut self.seed, number(name, value, 0, u64::MAX)?),
            "--reading-ms" => once(
                name,
                &mut self.reading_ms,
                number(name, value, 10, 3_600_000)?,
            ),
            _ => unreachable!("every option is listed"),
        }
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    fn command(self) -> Result<Command, LoadError> {
        if self.has("--help") || self.has("-h") {
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
