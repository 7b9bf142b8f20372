//! A workload file as read: statements with their attributes, not yet checked against each other.

use super::attribute::Attribute;

/// All statements of a file, variables filled in.
#[derive(Debug, Default)]
pub(super) struct Syntax {
    pub(super) filesets: Vec<Statement>,
    pub(super) processes: Vec<ProcessSyntax>,
    pub(super) eventgen: Option<Statement>,
    pub(super) run_s: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Statement {
    /// `fileset`, `file`, or the kind of a flowop.
    pub(super) word: String,
    pub(super) line: usize,
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Debug)]
pub(super) struct ProcessSyntax {
    pub(super) statement: Statement,
    pub(super) threads: Vec<ThreadSyntax>,
}

#[derive(Debug)]
pub(super) struct ThreadSyntax {
    pub(super) statement: Statement,
    pub(super) flowops: Vec<Statement>,
}
