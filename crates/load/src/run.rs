//! One load from start to end: read the workload, fill, run with readings, sum up, clean.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::LoadError;
use crate::arguments::{Command, Fill, RunOptions, Source, Workload};
use crate::control::Control;
use crate::data::directory::{Directory, Note, fingerprint};
use crate::data::fill::{Progress, check_room, fill, open_root, scan};
use crate::data::layout::Layout;
use crate::data::tree::Tree;
use crate::definition::{Definition, Kind};
use crate::engine::plan::Parts;
use crate::engine::trace::Trace;
use crate::engine::{self, Plan};
use crate::reading::Reader;
use crate::report::{Facts, FillLine, Output};
use crate::signals::{self, Signal};
use crate::{futex, personality, scale, wml};

/// How long threads may still be in a system call after the end was asked for.
const GRACE: Duration = Duration::from_millis(700);
/// How often the fill is looked at, and told of once a second.
const LOOK: Duration = Duration::from_millis(100);

/// Exit status of a load that a signal ended: what was measured was told.
const STOPPED_EARLY: u8 = 3;
const INTERRUPTED: u8 = 130;

/// Do what the command line says.
///
/// # Errors
/// Wrong input, or work that failed.
pub fn command(command: &Command, out: &mut dyn Write) -> Result<u8, LoadError> {
    let mut output = Output(out);
    match command {
        Command::Help => {
            let written = output.0.write_all(crate::arguments::USAGE.as_bytes());
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
        let directory = Directory::open(&options.dir)?;
        let control = Arc::default();
        Ok(Load {
            options,
            name,
            scale: workload.scale,
            definition,
            seconds,
            directory,
            control,
            begun,
        })
    }

    fn run(mut self, output: &mut Output) -> Result<u8, LoadError> {
        signals::hold();
        let status = self.work(output);
        if !self.options.clean {
            return status;
        }
        let cleaned = self.directory.clean();
        let status = status?;
        cleaned.map(|()| status)
    }

    fn work(&mut self, output: &mut Output) -> Result<u8, LoadError> {
        let (trees, signal) = self.prepare(output)?;
        if let Some(signal) = signal {
            return Ok(status_of(signal));
        }
        if self.options.fill == Fill::Only {
            return Ok(0);
        }
        self.load(trees, output)
    }

    /// Lay out the file sets, and make or find their files.
    fn prepare(&mut self, output: &mut Output) -> Result<(Vec<Tree>, Option<Signal>), LoadError> {
        let left = self.directory.note()?;
        let fits = |note: &Note| {
            note.complete && note.fingerprint == fingerprint(&self.definition.filesets)
        };
        let note = match (self.options.fill, left) {
            (Fill::Never, Some(note)) if fits(&note) => note,
            (Fill::Never, Some(_)) => {
                return Err(self.unfilled("was filled for another workload, scale or threads"));
            }
            (Fill::Never, None) => return Err(self.unfilled("was not filled")),
            (_, left) => {
                let kept = left.filter(|note| fits(note) && note.seed == self.options.seed);
                let (note, signal) = self.fill(kept, output)?;
                if signal.is_some() {
                    return Ok((Vec::new(), signal));
                }
                note
            }
        };
        let trees = self.trees(&note)?;
        let mutates =
            |kind: Kind| kind.writes() || matches!(kind, Kind::CreateFile | Kind::DeleteFile);
        let changes = self
            .definition
            .groups
            .iter()
            .flat_map(|group| &group.flowops)
            .any(|f| mutates(f.kind));
        if self.options.fill != Fill::Only && changes && !note.changed {
            self.directory.write(&Note {
                changed: true,
                ..note
            })?;
        }
        Ok((trees, None))
    }

    fn unfilled(&self, why: &str) -> LoadError {
        let shown = self.directory.path().display();
        LoadError::Input(format!(
            "--no-fill: {shown} {why}; run the same with --fill-only first"
        ))
    }

    fn trees(&self, note: &Note) -> Result<Vec<Tree>, LoadError> {
        let sets = self.definition.filesets.iter().enumerate();
        sets.map(|(place, set)| {
            let layout = Layout::of(set, place, note.seed);
            let path = self.directory.path().join(&set.name);
            let exists = if note.changed {
                scan(&path, &layout)?
            } else {
                layout.prealloc.clone()
            };
            let kinds = [Kind::CreateFile, Kind::DeleteFile];
            let by_slot = self
                .definition
                .groups
                .iter()
                .flat_map(|group| &group.flowops);
            let removes_open = by_slot
                .into_iter()
                .any(|f| f.kind == Kind::DeleteFile && f.fileset.is_none());
            let tracked = self.definition.set_has(place, &kinds) || removes_open;
            Ok(Tree::new(
                &set.name,
                layout,
                open_root(&path)?,
                &exists,
                tracked,
                !note.changed,
            ))
        })
        .collect()
    }

    /// Make what is missing; tell of it. A signal ends it early.
    fn fill(
        &mut self,
        kept: Option<Note>,
        output: &mut Output,
    ) -> Result<(Note, Option<Signal>), LoadError> {
        let begun = Instant::now();
        let keep = |note: &Note, set: &crate::definition::FileSet| !note.changed || set.reuse;
        let layouts: Vec<Layout> = self
            .definition
            .filesets
            .iter()
            .enumerate()
            .map(|(place, set)| Layout::of(set, place, self.options.seed))
            .collect();
        let mut wanted: Vec<Vec<bool>> = layouts
            .iter()
            .map(|layout| layout.prealloc.clone())
            .collect();
        let mut note = Directory::begun(&self.definition.filesets, self.options.seed);
        match &kept {
            Some(kept) => {
                let survives = |set: &crate::definition::FileSet| kept.changed && keep(kept, set);
                note.changed = self.definition.filesets.iter().any(survives);
                let mut stale = kept.clone();
                stale.filesets.clear();
                for (place, set) in self.definition.filesets.iter().enumerate() {
                    if !keep(kept, set) {
                        stale.filesets.push(set.name.clone());
                        continue;
                    }
                    let path = self.directory.path().join(&set.name);
                    // Someone may have removed the files behind the note's back.
                    if let Ok(exists) = scan(&path, &layouts[place]) {
                        for (wanted, exists) in wanted[place].iter_mut().zip(exists) {
                            *wanted &= !exists;
                        }
                    }
                }
                self.directory.remove_files(&stale)?;
            }
            None => {
                if let Some(left) = self.directory.note()? {
                    self.directory.remove_files(&left)?;
                }
                self.directory.refuse_foreign(&self.definition.filesets)?;
            }
        }
        let made = |place: usize| wanted[place].iter().filter(|wanted| **wanted).count() as u64;
        let files_made: u64 = (0..wanted.len()).map(made).sum();
        let bytes: u64 = layouts
            .iter()
            .zip(&wanted)
            .flat_map(|(layout, wanted)| layout.size_bytes.iter().zip(wanted))
            .filter(|(_, wanted)| **wanted)
            .map(|(size, _)| size)
            .sum();
        if files_made > 0 || kept.is_none() {
            check_room(self.directory.path(), bytes, files_made)?;
            self.directory.write(&note)?;
            if let Some(signal) = self.make(&layouts, &wanted, (files_made, bytes))? {
                return Ok((note, Some(signal)));
            }
            // What the fill left to be written would be written during the run, and be measured.
            self.directory.sync();
        }
        note.complete = true;
        self.directory.write(&note)?;
        output.line(&FillLine {
            kind: "fill",
            files: layouts.iter().map(Layout::prealloc_files).sum(),
            bytes: layouts.iter().map(Layout::prealloc_bytes).sum(),
            files_made,
            fill_s: begun.elapsed().as_secs_f64(),
        })?;
        Ok((note, None))
    }

    /// Make files in the background while this thread tells of progress and waits for signals.
    fn make(
        &self,
        layouts: &[Layout],
        wanted: &[Vec<bool>],
        (files, bytes): (u64, u64),
    ) -> Result<Option<Signal>, LoadError> {
        let progress = Progress::default();
        let (sets, control) = (&self.definition.filesets, &*self.control);
        std::thread::scope(|scope| {
            let filling = scope.spawn(|| {
                for ((set, layout), wanted) in sets.iter().zip(layouts).zip(wanted) {
                    let path = self.directory.path().join(&set.name);
                    if let Err(error) = fill(&path, layout, wanted, &progress, control) {
                        control.fail(error);
                    }
                }
            });
            let (mut signal, mut told) = (None, Instant::now());
            while !filling.is_finished() {
                signal = signals::wait(Duration::from_millis(if files < 1000 { 2 } else { 20 }))
                    .or(signal);
                if signal.is_some() {
                    control.stop();
                }
                if told.elapsed() > 10 * LOOK {
                    told = Instant::now();
                    let megabytes = progress.bytes.load(Ordering::Relaxed) / 1_000_000;
                    let made = progress.files.load(Ordering::Relaxed);
                    eprintln!(
                        "filling: {made} of {files} files, {megabytes} of {} MB",
                        bytes / 1_000_000
                    );
                }
            }
            control.result()?;
            Ok(signal)
        })
    }

    /// Run the workload until its time is over, it ends itself, or a signal comes.
    fn load(&mut self, trees: Vec<Tree>, output: &mut Output) -> Result<u8, LoadError> {
        let data_bytes = trees.iter().map(|tree| tree.layout.prealloc_bytes()).sum();
        let data_files = trees.iter().map(|tree| tree.present() as u64).sum();
        let trace = match &self.options.record {
            Some(file) => Some(Trace::create(file, engine::now_ns())?),
            None => None,
        };
        let parts = Parts {
            definition: self.definition.clone(),
            trees,
            directory: self.directory.path().to_owned(),
            seed: self.options.seed,
            trace,
        };
        let plan = Arc::new(Plan::new(parts, Arc::clone(&self.control)));
        let mut reader = Reader::new(&self.definition);
        engine::start(&plan, reader.tallies())?;
        let start_s = self.begun.elapsed().as_secs_f64();
        plan.gate.store(1, Ordering::SeqCst);
        futex::wake_all(&plan.gate);
        let start = Instant::now();
        let (signal, written) = self.readings(&mut reader, start, output);
        let load_s = start.elapsed().as_secs_f64();
        plan.control.stop();
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
