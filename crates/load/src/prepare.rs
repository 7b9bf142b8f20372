//! File sets before a run: found as an earlier fill left them, or made, with progress and an end on a signal.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::LOG;
use crate::LoadError;
use crate::arguments::Fill;
use crate::control::Control;
use crate::data::directory::{Directory, Note, fingerprint};
use crate::data::fill::{Progress, check_room, fill, open_root, scan};
use crate::data::layout::Layout;
use crate::data::tree::Tree;
use crate::definition::{Definition, FileSet, Kind};
use crate::report::{FillLine, Output};
use crate::signals::{self, Signal};

/// How often a fill's progress is told.
const TELL: Duration = Duration::from_secs(1);

/// What preparing needs.
pub struct Preparation<'a> {
    /// The workload, scaled.
    pub definition: &'a Definition,
    /// Where.
    pub directory: &'a mut Directory,
    /// The end.
    pub control: &'a Arc<Control>,
    /// Make files, or find them.
    pub fill: Fill,
    /// Seed of the layout, for a fill.
    pub seed: u64,
}

/// What a fill has to make.
struct Missing {
    layouts: Vec<Layout>,
    /// Files to make, by set.
    wanted: Vec<Vec<bool>>,
}

impl Missing {
    fn files(&self) -> u64 {
        self.wanted
            .iter()
            .flatten()
            .filter(|wanted| **wanted)
            .count() as u64
    }

    fn bytes(&self) -> u64 {
        let sets = self.layouts.iter().zip(&self.wanted);
        let sizes = sets.flat_map(|(layout, wanted)| layout.size_bytes.iter().zip(wanted));
        sizes
            .filter(|(_, wanted)| **wanted)
            .map(|(size, _)| size)
            .sum()
    }
}

impl Preparation<'_> {
    /// The file sets, ready to be used; or the signal that ended the fill.
    ///
    /// # Errors
    /// There is no fill that fits, or it fails.
    pub fn trees(mut self, output: &mut Output) -> Result<(Vec<Tree>, Option<Signal>), LoadError> {
        let left = self.directory.note()?;
        let fits = |note: &Note| {
            note.complete && note.fingerprint == fingerprint(&self.definition.filesets)
        };
        let note = match (self.fill, left) {
            (Fill::Never, Some(note)) if fits(&note) => note,
            (Fill::Never, Some(_)) => {
                return Err(self.unfilled("was filled for another workload, scale or threads"));
            }
            (Fill::Never, None) => return Err(self.unfilled("was not filled")),
            (_, left) => {
                let kept = left.filter(|note| fits(note) && note.seed == self.seed);
                let (note, signal) = self.filled(kept, output)?;
                if signal.is_some() {
                    return Ok((Vec::new(), signal));
                }
                note
            }
        };
        if self.fill == Fill::Only {
            return Ok((Vec::new(), None));
        }
        let trees = self.found(&note)?;
        self.mark_changed(note)?;
        Ok((trees, None))
    }

    fn unfilled(&self, why: &str) -> LoadError {
        let shown = self.directory.path().display();
        LoadError::Input(format!(
            "--no-fill: {shown} {why}; run the same with --fill-only first"
        ))
    }

    /// Note that the run may change files, before it does.
    fn mark_changed(&mut self, note: Note) -> Result<(), LoadError> {
        let mutates =
            |kind: Kind| kind.writes() || matches!(kind, Kind::CreateFile | Kind::DeleteFile);
        let mut flowops = self
            .definition
            .groups
            .iter()
            .flat_map(|group| &group.flowops);
        if !note.changed && flowops.any(|flowop| mutates(flowop.kind)) {
            return self.directory.write(&Note {
                changed: true,
                ..note
            });
        }
        Ok(())
    }

    /// The file sets as a note says they are, looked through where runs changed them.
    fn found(&self, note: &Note) -> Result<Vec<Tree>, LoadError> {
        let mut flowops = self
            .definition
            .groups
            .iter()
            .flat_map(|group| &group.flowops);
        let removes_open = flowops.any(|f| f.kind == Kind::DeleteFile && f.fileset.is_none());
        let sets = self.definition.filesets.iter().enumerate();
        sets.map(|(place, set)| {
            let layout = Layout::of(set, place, note.seed)?;
            let path = self.directory.path().join(&set.name);
            let exists = if note.changed {
                scan(&path, &layout)?
            } else {
                layout.prealloc.clone()
            };
            let kinds = [Kind::CreateFile, Kind::DeleteFile];
            let tracked = self.definition.set_has(place, &kinds) || removes_open;
            let root = open_root(&path)?;
            Ok(Tree::new(
                &set.name,
                layout,
                root,
                &exists,
                tracked,
                !note.changed,
            ))
        })
        .collect()
    }

    /// Make what is missing; tell of it. A signal ends it early.
    fn filled(
        &mut self,
        kept: Option<Note>,
        output: &mut Output,
    ) -> Result<(Note, Option<Signal>), LoadError> {
        let begun = Instant::now();
        let mut note = Directory::begun(&self.definition.filesets, self.seed);
        let missing = match self.missing(kept.as_ref(), &mut note)? {
            Ok(missing) => missing,
            Err(signal) => return Ok((note, Some(signal))),
        };
        let files_made = missing.files();
        if files_made > 0 || kept.is_none() {
            check_room(self.directory.path(), missing.bytes(), files_made)?;
            self.directory.write(&note)?;
            if let Some(signal) = self.make(&missing)? {
                return Ok((note, Some(signal)));
            }
            // What the fill left to be written would be written during the run, and be measured.
            self.directory.sync();
        }
        note.complete = true;
        self.directory.write(&note)?;
        output.line(&FillLine {
            kind: "fill",
            files: missing.layouts.iter().map(Layout::prealloc_files).sum(),
            bytes: missing.layouts.iter().map(Layout::prealloc_bytes).sum(),
            files_made,
            fill_s: begun.elapsed().as_secs_f64(),
        })?;
        Ok((note, None))
    }

    /// What has to be made; what is left of an earlier fill and does not fit is removed, unless a signal comes.
    fn missing(
        &mut self,
        kept: Option<&Note>,
        note: &mut Note,
    ) -> Result<Result<Missing, Signal>, LoadError> {
        let sets = self.definition.filesets.iter().enumerate();
        let layouts = sets
            .map(|(place, set)| Layout::of(set, place, self.seed))
            .collect::<Result<Vec<Layout>, LoadError>>()?;
        let mut wanted: Vec<Vec<bool>> = layouts
            .iter()
            .map(|layout| layout.prealloc.clone())
            .collect();
        let Some(kept) = kept else {
            if let Some(left) = self.directory.note()?
                && let Some(signal) = self.directory.remove_files(&left)?
            {
                return Ok(Err(signal));
            }
            self.directory.refuse_foreign(&self.definition.filesets)?;
            return Ok(Ok(Missing { layouts, wanted }));
        };
        let stays = |set: &FileSet| !kept.changed || set.reuse;
        note.changed = kept.changed && self.definition.filesets.iter().any(stays);
        let mut stale = kept.clone();
        stale.filesets.clear();
        for (place, set) in self.definition.filesets.iter().enumerate() {
            if !stays(set) {
                stale.filesets.push(set.name.clone());
                continue;
            }
            let path = self.directory.path().join(&set.name);
            // Someone may have removed the files behind the note's back: then all are wanted.
            if let Ok(exists) = scan(&path, &layouts[place]) {
                for (wanted, exists) in wanted[place].iter_mut().zip(exists) {
                    *wanted &= !exists;
                }
            }
        }
        if let Some(signal) = self.directory.remove_files(&stale)? {
            return Ok(Err(signal));
        }
        Ok(Ok(Missing { layouts, wanted }))
    }

    /// Make files in the background while this thread tells of progress and waits for signals.
    fn make(&self, missing: &Missing) -> Result<Option<Signal>, LoadError> {
        let progress = Progress::default();
        let (sets, control) = (&self.definition.filesets, &**self.control);
        let (files, bytes) = (missing.files(), missing.bytes());
        let directory = self.directory.path();
        std::thread::scope(|scope| {
            let filling = scope.spawn(|| {
                let each = sets.iter().zip(&missing.layouts).zip(&missing.wanted);
                for ((set, layout), wanted) in each {
                    if let Err(error) = fill(
                        &directory.join(&set.name),
                        layout,
                        wanted,
                        &progress,
                        control,
                    ) {
                        control.fail(error);
                    }
                }
            });
            let (mut signal, mut told) = (None, Instant::now());
            while !filling.is_finished() {
                let patience = Duration::from_millis(if files < 1000 { 2 } else { 20 });
                signal = signals::wait(patience).or(signal);
                if signal.is_some() {
                    control.stop();
                }
                if told.elapsed() > TELL {
                    told = Instant::now();
                    let (made, done) = (progress.files.load(Relaxed), progress.bytes.load(Relaxed));
                    let (done, bytes) = (done / 1_000_000, bytes / 1_000_000);
                    LOG.line(format_args!(
                        "filling: {made} of {files} files, {done} of {bytes} MB"
                    ));
                }
            }
            control.result()?;
            Ok(signal)
        })
    }
}
