//! One load from start to end: read the workload, fill, run with readings, sum up, clean.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::LoadError;
use crate::arguments::{Command, Fill, RunOptions, Source, Workload};
use crate::control::Control;
use crate::data::directory::Directory;
use crate::data::tree::Tree;
use crate::definition::Definition;
use crate::engine::plan::Parts;
use crate::engine::trace::Trace;
use crate::engine::{self, Plan};
use crate::prepare::Preparation;
use crate::reading::Reader;
use crate::report::{Facts, Output};
use crate::signals::{self, Signal};
use crate::{futex, personality, scale, wml};

/// How long threads may still be in a system call after the end was asked for.
const GRACE: Duration = Duration::from_millis(700);
/// How often it is looked at whether the load ended by itself.
const LOOK: Duration = Duration::from_millis(100);

/// Exit status of a load that a signal ended: what was measured was told.
const STOPPED_EARLY: u8 = 3;
const INTERRUPTED: u8 = 130;

/// Do what the command line says.
///
/// # Errors
/// Wrong input, or work that failed.
pub fn command(command: &Command, out: &mut dyn Write) -> Result<u8, LoadError> {
    ascar_privileges::reduce(&ascar_privileges::LOAD)
        .map_err(|error| LoadError::Work(format!("cannot give up rights: {error}")))?;
    let mut output = Output(out);
    match command {
        Command::Help => {
            let written = output.0.write_all(crate::arguments::HELP.as_bytes());
            written.map_err(|e| LoadError::Work(format!("cannot write the help: {e}")))?;
        }
        Command::List => personality::ALL
            .iter()
            .try_for_each(|personality| output.personality(personality))?,
        Command::Describe(workload) => {
            let (name, text, definition) = read(workload)?;
            output.description(&name, &text, &definition)?;
        }
        Command::Clean(dir) => Directory::open(dir)?.clean()?,
        Command::Run(workload, options) => return Load::begin(workload, options)?.run(&mut output),
    }
    Ok(0)
}

/// A workload's name, text, and definition, scaled.
fn read(workload: &Workload) -> Result<(String, String, Definition), LoadError> {
    let (name, text) = match &workload.source {
        Source::Personality(name) => {
            let found = personality::find(name)?;
            (found.name.to_owned(), found.text.to_owned())
        }
        Source::Wml(file) => (file.display().to_string(), read_file(file)?),
    };
    let mut definition = wml::parse(&text).map_err(|e| LoadError::Input(format!("{name}: {e}")))?;
    if let Some(threads) = workload.threads {
        scale::threads(&mut definition, threads);
    }
    scale::data(&mut definition, workload.scale);
    Ok((name, text, definition))
}

/// A workload file's text; "-" is standard input.
fn read_file(file: &Path) -> Result<String, LoadError> {
    use std::io::Read;
    let refused = |why: String| LoadError::Input(format!("--wml: {} {why}", file.display()));
    let unreadable = |error: std::io::Error| refused(format!("cannot be read ({error})"));
    let source: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(unreadable)?)
    };
    let mut bytes = Vec::new();
    source
        .take(wml::LONGEST_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|_| refused("is not UTF-8 text".into()))
}

struct Load<'a> {
    options: &'a RunOptions,
    name: String,
    scale: f64,
    definition: Definition,
    seconds: f64,
    directory: Directory,
    trace: Option<Trace>,
    control: Arc<Control>,
    begun: Instant,
}

impl<'a> Load<'a> {
    /// Check everything before anything is touched.
    fn begin(workload: &Workload, options: &'a RunOptions) -> Result<Load<'a>, LoadError> {
        let begun = Instant::now();
        let (name, _, definition) = read(workload)?;
        let seconds = match (options.seconds.or(definition.run_s), options.fill) {
            (Some(seconds), _) => seconds,
            (None, Fill::Only) => 0.0,
            (None, _) => {
                return Err(LoadError::Input(
                    "--seconds: how long to run; the file does not say".into(),
                ));
            }
        };
        // From here on there is something to put away.
        signals::hold();
        let directory = Directory::open(&options.dir)?;
        let trace = options.record.as_deref().map(Trace::create).transpose()?;
        let control = Arc::default();
        Ok(Load {
            options,
            name,
            scale: workload.scale,
            definition,
            seconds,
            directory,
            trace,
            control,
            begun,
        })
    }

    fn run(mut self, output: &mut Output) -> Result<u8, LoadError> {
        let status = self.work(output);
        if !self.options.clean {
            return status;
        }
        let cleaned = self.directory.clean();
        let status = status?;
        cleaned.map(|()| status)
    }

    fn work(&mut self, output: &mut Output) -> Result<u8, LoadError> {
        let preparation = Preparation {
            definition: &self.definition,
            directory: &mut self.directory,
            control: &self.control,
            fill: self.options.fill,
            seed: self.options.seed,
        };
        let (trees, signal) = preparation.trees(output)?;
        if let Some(signal) = signal {
            return Ok(status_of(signal));
        }
        if self.options.fill == Fill::Only {
            return Ok(0);
        }
        self.load(trees, output)
    }

    /// Run the workload until its time is over, it ends itself, or a signal comes.
    fn load(&mut self, trees: Vec<Tree>, output: &mut Output) -> Result<u8, LoadError> {
        let data_bytes = trees.iter().map(|tree| tree.layout.prealloc_bytes()).sum();
        let data_files = trees.iter().map(|tree| tree.present() as u64).sum();
        let trace = self.trace.take();
        let parts = Parts {
            definition: self.definition.clone(),
            trees,
            directory: self.directory.path().to_owned(),
            seed: self.options.seed,
            rate_per_s: self.options.rate_per_s,
            trace: trace.map(|trace| trace.since(engine::now_ns())),
        };
        let plan = Arc::new(Plan::new(parts, Arc::clone(&self.control)));
        let mut reader = Reader::new(&self.definition);
        engine::start(&plan, reader.tallies())?;
        go_first();
        let start_s = self.begun.elapsed().as_secs_f64();
        // Before they are let go: they may have done much before this thread runs again.
        let start = Instant::now();
        plan.gate.store(1, Ordering::SeqCst);
        futex::wake_all(&plan.gate);
        let (signal, written) = self.readings(&mut reader, start, output);
        plan.control.stop();
        let load_s = start.elapsed().as_secs_f64();
        let threads_late = wait_for_threads(&plan);
        self.control.result()?;
        written?;
        if let Some(trace) = &plan.trace {
            trace.finish()?;
        }
        reader.read();
        let facts = Facts {
            workload: self.name.clone(),
            scale: self.scale,
            threads: self.definition.threads(),
            seed: self.options.seed,
            data_bytes,
            data_files,
            ended: match signal {
                Some(_) => "signal",
                None if plan.control.finished() => "finished",
                None => "time",
            },
            starved: plan.starved.load(Ordering::Relaxed),
            rate_per_s: self.options.rate_per_s,
            waiting: plan.waiting.load(Ordering::Relaxed),
            threads_late,
            start_s,
        };
        output.summary(&reader, load_s, &facts, self.options.cdf)?;
        Ok(signal.map_or(0, status_of))
    }

    /// Take a reading at the end of each interval.
    fn readings(
        &self,
        reader: &mut Reader,
        start: Instant,
        output: &mut Output,
    ) -> (Option<Signal>, Result<(), LoadError>) {
        let step = Duration::from_millis(self.options.reading_ms);
        let end = Duration::from_secs_f64(self.seconds);
        let (mut due, mut last) = (step, 0.0);
        loop {
            let next = due.min(end);
            while start.elapsed() < next {
                // The look bounds how late a failure, or the workload's own end, is seen.
                let left = next.saturating_sub(start.elapsed()).min(LOOK);
                let signal = signals::wait(left);
                if signal.is_some() || self.control.stopped() {
                    return (signal, Ok(()));
                }
            }
            if next == due {
                reader.read();
                let seconds = start.elapsed().as_secs_f64();
                if let Err(error) = output.reading(reader, seconds, seconds - last) {
                    return (None, Err(error));
                }
                last = seconds;
                // A reading that came late does not make the next ones come in a row.
                while due <= start.elapsed() {
                    due += step;
                }
            }
            if start.elapsed() >= end {
                return (None, Ok(()));
            }
        }
    }
}

fn status_of(signal: Signal) -> u8 {
    match signal {
        Signal::Terminate => STOPPED_EARLY,
        Signal::Interrupt => INTERRUPTED,
    }
}

/// Let this thread, which takes readings and hears signals, run before the load's own that keep all processors busy.
/// Only root may. Without, both come late where there are far more threads than processors: some 0.3 s with 100 on 2.
fn go_first() {
    // SAFETY: changes the calling thread's priority only (0 is this thread); a refusal leaves it as it is.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
}

/// Wait until all threads have ended, at most the grace; how many have not.
fn wait_for_threads(plan: &Plan) -> u32 {
    let begun = Instant::now();
    loop {
        let running = plan.running.load(Ordering::SeqCst);
        let left = GRACE.saturating_sub(begun.elapsed());
        if running == 0 || left.is_zero() {
            return running;
        }
        futex::wait(&plan.running, running, left.min(LOOK));
    }
}
