//! The small expression language of constraints, objectives and users' rules. Grammar and semantics stand in Python's
//! `ascar.expression`; the vectors in `tests/data/expression_vectors.json` hold both to the same results.

mod evaluation;
mod lexer;
mod parser;

pub use evaluation::Value;
pub use parser::Expression;

/// Longest formula in characters.
pub const LENGTH_MAX: usize = 4096;
/// Deepest nesting.
pub const DEPTH_MAX: usize = 64;
