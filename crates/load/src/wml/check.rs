//! From statements to a checked definition: types, ranges, references, and which file is open when.

use std::collections::HashMap;

use super::attribute::Attributes;
use super::error::WmlError;
use super::fileset::{LARGEST_BYTES, fileset};
use super::slots;
use super::syntax::{ProcessSyntax, Statement, Syntax, ThreadSyntax};
use crate::definition::{Definition, FileSet, Flowop, KINDS, Kind, ThreadGroup};
use crate::quantity::Quantity;

/// Most threads of one load.
pub const MOST_THREADS: u32 = 4096;
/// Most pairs of a thread and a flowop; each holds a histogram of some 5 KB.
const MOST_HISTOGRAMS: u64 = 50_000;
/// File slots of a thread.
pub const MOST_FDS: usize = 128;

pub(super) fn definition(syntax: Syntax) -> Result<Definition, WmlError> {
    let mut filesets: Vec<FileSet> = Vec::new();
    for statement in syntax.filesets {
        let line = statement.line;
        let set = fileset(statement)?;
        if filesets.iter().any(|other| other.name == set.name) {
            return Err(WmlError::new(
                line,
                &set.name,
                "two file sets have this name",
            ));
        }
        filesets.push(set);
    }
    let mut checker = Checker {
        filesets: &filesets,
        names: HashMap::new(),
        targets: Vec::new(),
    };
    let mut groups = Vec::new();
    for process in syntax.processes {
        checker.process(process, &mut groups)?;
    }
    checker.resolve(&mut groups)?;
    let event_rate_per_s = syntax.eventgen.map(event_rate).transpose()?.unwrap_or(0.0);
    let definition = Definition {
        filesets,
        groups,
        event_rate_per_s,
        run_s: syntax.run_s,
    };
    whole(&definition)?;
    Ok(definition)
}

fn whole(definition: &Definition) -> Result<(), WmlError> {
    if definition.groups.is_empty() {
        return Err(WmlError::new(
            1,
            "",
            "the file defines no thread, so there is nothing to run",
        ));
    }
    let threads: u64 = definition
        .groups
        .iter()
        .map(|group| u64::from(group.threads))
        .sum();
    let histograms: u64 = definition
        .groups
        .iter()
        .map(|group| u64::from(group.threads) * group.flowops.len() as u64)
        .sum();
    if threads > u64::from(MOST_THREADS) || histograms > MOST_HISTOGRAMS {
        let text = format!(
            "{threads} threads with {histograms} flowops are too many; at most {MOST_THREADS} and {MOST_HISTOGRAMS}"
        );
        return Err(WmlError::new(1, "", text));
    }
    Ok(())
}

fn event_rate(statement: Statement) -> Result<f64, WmlError> {
    let mut attributes = Attributes::new(statement.attributes, "eventgen", statement.line)?;
    let rate = attributes.number("rate", 0.0, 1e9)?;
    attributes.done()?;
    rate.ok_or_else(|| {
        WmlError::new(
            statement.line,
            "eventgen",
            "needs an attribute rate (events a second)",
        )
    })
}

/// A reference to another flowop, to be found once all are known.
struct TargetName {
    at: (usize, usize),
    name: String,
    line: usize,
}

struct Checker<'a> {
    filesets: &'a [FileSet],
    names: HashMap<String, (usize, usize)>,
    targets: Vec<TargetName>,
}

impl Checker<'_> {
    fn process(
        &mut self,
        process: ProcessSyntax,
        groups: &mut Vec<ThreadGroup>,
    ) -> Result<(), WmlError> {
        let line = process.statement.line;
        let mut attributes = Attributes::new(process.statement.attributes, "process", line)?;
        let name = attributes.name()?;
        let instances = attributes
            .whole("instances", 1, u64::from(MOST_THREADS))?
            .unwrap_or(1);
        attributes.done()?;
        if process.threads.is_empty() {
            return Err(WmlError::new(line, &name, "the process has no thread"));
        }
        for thread in process.threads {
            let group = self.thread(thread, &name, instances, groups.len())?;
            groups.push(group);
        }
        Ok(())
    }

    fn thread(
        &mut self,
        thread: ThreadSyntax,
        process: &str,
        processes: u64,
        place: usize,
    ) -> Result<ThreadGroup, WmlError> {
        let line = thread.statement.line;
        let mut attributes = Attributes::new(thread.statement.attributes, "thread", line)?;
        let name = attributes.name()?;
        let instances = attributes
            .whole("instances", 1, u64::from(MOST_THREADS))?
            .unwrap_or(1);
        // Understood, and without effect here: buffers have the size that the flowops need.
        attributes.number("memsize", 0.0, LARGEST_BYTES)?;
        attributes.flag("useism")?;
        attributes.done()?;
        let threads = processes * instances;
        if threads > u64::from(MOST_THREADS) {
            return Err(WmlError::new(
                line,
                &name,
                format!("{threads} threads are too many; at most {MOST_THREADS}"),
            ));
        }
        if thread.flowops.is_empty() {
            return Err(WmlError::new(line, &name, "the thread has no flowop"));
        }
        let mut flowops = Vec::new();
        let mut lines = Vec::new();
        for statement in thread.flowops {
            lines.push(statement.line);
            flowops.push(self.flowop(statement, (place, flowops.len()))?);
        }
        slots::check(&flowops, &lines)?;
        Ok(ThreadGroup {
            process: process.to_owned(),
            name,
            threads: threads as u32,
            flowops,
        })
    }

    fn flowop(&mut self, statement: Statement, at: (usize, usize)) -> Result<Flowop, WmlError> {
        let line = statement.line;
        let Some((_, kind)) = KINDS.iter().find(|(word, _)| *word == statement.word) else {
            let known: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
            let text = format!(
                "not a flowop that is understood; known: {}",
                known.join(", ")
            );
            return Err(WmlError::new(line, &statement.word, text));
        };
        let mut attributes = Attributes::new(
            statement.attributes,
            format!("flowop {}", statement.word),
            line,
        )?;
        attributes.rename("filename", "filesetname")?;
        let name = attributes.name()?;
        if self.names.insert(name.clone(), at).is_some() {
            return Err(WmlError::new(
                line,
                &name,
                "two flowops have this name; readings are told apart by it",
            ));
        }
        let flowop = self.attributes(*kind, name, &mut attributes, at)?;
        attributes.done()?;
        Ok(flowop)
    }

    fn attributes(
        &mut self,
        kind: Kind,
        name: String,
        attributes: &mut Attributes,
        at: (usize, usize),
    ) -> Result<Flowop, WmlError> {
        let line = attributes.line();
        let mut flowop = Flowop {
            kind,
            name,
            fileset: None,
            fd: None,
            srcfd: None,
            iosize_bytes: Quantity::Fixed(0.0),
            value: Quantity::Fixed(1.0),
            iters: 1,
            target: None,
            random: false,
            directio: false,
            dsync: false,
            opennext: false,
            workingset_bytes: 0,
            highwater: 1,
            blocking: false,
        };
        let named = matches!(kind, Kind::CreateFile | Kind::OpenFile | Kind::FsyncSet);
        if named || kind.transfers() || matches!(kind, Kind::DeleteFile | Kind::StatFile) {
            flowop.fileset = self.fileset(attributes, kind, named)?;
        }
        if kind.is_file_operation() && kind != Kind::FsyncSet {
            flowop.fd = attributes
                .whole("fd", 0, MOST_FDS as u64 - 1)?
                .map(|fd| fd as usize);
        }
        if kind.transfers() || matches!(kind, Kind::CreateFile | Kind::OpenFile) {
            flowop.directio = attributes.flag("directio")?;
            flowop.dsync = attributes.flag("dsync")?;
        }
        if kind.transfers()
            || matches!(
                kind,
                Kind::DeleteFile | Kind::StatFile | Kind::Fsync | Kind::SemPost
            )
        {
            flowop.iters = attributes.whole("iters", 1, 1_000_000_000)?.unwrap_or(1);
        }
        if kind.transfers() {
            self.transfer(kind, &mut flowop, attributes)?;
        }
        match kind {
            Kind::Delay | Kind::Hog => flowop.value = required(attributes, line, "value", 1e9)?,
            Kind::SemBlock => {
                flowop.value = required(attributes, line, "value", 1e9)?;
                flowop.highwater = attributes
                    .whole("highwater", 1, 1_000_000_000)?
                    .unwrap_or(1);
            }
            Kind::SemPost => {
                flowop.value = attributes.quantity("value", 1e9)?.unwrap_or(flowop.value);
                flowop.blocking = attributes.flag("blocking")?;
            }
            Kind::FinishOnBytes | Kind::FinishOnCount => {
                flowop.value = required(attributes, line, "value", LARGEST_BYTES)?;
            }
            _ => {}
        }
        self.target(kind, attributes, at)?;
        Ok(flowop)
    }

    fn transfer(
        &self,
        kind: Kind,
        flowop: &mut Flowop,
        attributes: &mut Attributes,
    ) -> Result<(), WmlError> {
        let line = attributes.line();
        let whole = matches!(kind, Kind::ReadWholeFile | Kind::WriteWholeFile);
        let iosize = attributes.quantity("iosize", LARGEST_BYTES)?;
        match iosize {
            Some(iosize) => flowop.iosize_bytes = iosize,
            None if whole => {}
            None => {
                return Err(WmlError::new(
                    line,
                    kind.word(),
                    "needs an attribute iosize",
                ));
            }
        }
        if !whole && flowop.iosize_bytes.largest() < 1.0 {
            return Err(WmlError::new(
                line,
                kind.word(),
                "needs an iosize of at least one byte",
            ));
        }
        if whole {
            flowop.srcfd = attributes
                .whole("srcfd", 0, MOST_FDS as u64 - 1)?
                .map(|fd| fd as usize);
        } else {
            flowop.workingset_bytes = attributes
                .whole("workingset", 0, LARGEST_BYTES as u64)?
                .unwrap_or(0);
        }
        if matches!(kind, Kind::Read | Kind::Write | Kind::AioWrite) {
            flowop.random = attributes.flag("random")?;
            flowop.opennext = attributes.flag("opennext")?;
            if flowop.opennext && flowop.fileset.is_none() {
                return Err(WmlError::new(
                    line,
                    "opennext",
                    "needs an attribute filesetname to go round",
                ));
            }
        }
        if let Some(set) = flowop.fileset.map(|place| &self.filesets[place]) {
            if kind.writes() && set.readonly {
                return Err(WmlError::new(
                    line,
                    &set.name,
                    format!("{} on a file set that is readonly", kind.word()),
                ));
            }
            if kind.reads() && set.writeonly {
                return Err(WmlError::new(
                    line,
                    &set.name,
                    format!("{} on a file set that is writeonly", kind.word()),
                ));
            }
        }
        Ok(())
    }

    fn fileset(
        &self,
        attributes: &mut Attributes,
        kind: Kind,
        needed: bool,
    ) -> Result<Option<usize>, WmlError> {
        let line = attributes.line();
        match attributes.text("filesetname")? {
            Some(name) => match self.filesets.iter().position(|set| set.name == name) {
                Some(place) => Ok(Some(place)),
                None => Err(WmlError::new(
                    line,
                    &name,
                    "no file set of this name is defined",
                )),
            },
            None if needed => Err(WmlError::new(
                line,
                kind.word(),
                "needs an attribute filesetname",
            )),
            None => Ok(None),
        }
    }

    fn target(
        &mut self,
        kind: Kind,
        attributes: &mut Attributes,
        at: (usize, usize),
    ) -> Result<(), WmlError> {
        let takes = matches!(
            kind,
            Kind::SemPost
                | Kind::OpsLimit
                | Kind::IopsLimit
                | Kind::BwLimit
                | Kind::FinishOnBytes
                | Kind::FinishOnCount
        );
        if !takes {
            return Ok(());
        }
        let line = attributes.line();
        match attributes.text("target")? {
            Some(name) => self.targets.push(TargetName { at, name, line }),
            None if kind == Kind::SemPost => {
                return Err(WmlError::new(
                    line,
                    kind.word(),
                    "needs an attribute target, the name of a semblock",
                ));
            }
            None => {}
        }
        Ok(())
    }

    fn resolve(&self, groups: &mut [ThreadGroup]) -> Result<(), WmlError> {
        for TargetName { at, name, line } in &self.targets {
            let Some(found) = self.names.get(name) else {
                return Err(WmlError::new(*line, name, "no flowop has this name"));
            };
            let kind = groups[at.0].flowops[at.1].kind;
            let target = groups[found.0].flowops[found.1].kind;
            let fits = match kind {
                Kind::SemPost => target == Kind::SemBlock,
                Kind::BwLimit | Kind::IopsLimit | Kind::FinishOnBytes => target.transfers(),
                _ => target.is_file_operation(),
            };
            if !fits {
                let text = format!("{} cannot be the target of {}", target.word(), kind.word());
                return Err(WmlError::new(*line, name, text));
            }
            let limits = matches!(kind, Kind::OpsLimit | Kind::IopsLimit | Kind::BwLimit);
            if limits && found.0 != at.0 {
                let text = format!("{} looks at a flowop of its own thread only", kind.word());
                return Err(WmlError::new(*line, name, text));
            }
            groups[at.0].flowops[at.1].target = Some(*found);
        }
        Ok(())
    }
}

fn required(
    attributes: &mut Attributes,
    line: usize,
    key: &'static str,
    high: f64,
) -> Result<Quantity, WmlError> {
    attributes
        .quantity(key, high)?
        .ok_or_else(|| WmlError::new(line, key, "this attribute is needed here"))
}
