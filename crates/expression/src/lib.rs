//! The small expression language of constraints, conditions, objectives and users' rules. Grammar and semantics stand in
//! Python's `ascar.expression`, which is this crate bound; the vectors in `tests/data/expression_vectors.json` hold it to
//! them.

mod evaluation;
mod expression;
mod lexer;
mod parser;
mod text;
mod tree;

pub use evaluation::unknown;
pub use expression::Expression;
pub use text::{literal, quoted};
pub use tree::Value;

/// The longest formula, in characters.
pub const LENGTH_MAX: usize = 4096;
/// The deepest nesting, both of the text and of operations in the tree.
pub const DEPTH_MAX: usize = 64;
/// Words that name nothing.
pub const RESERVED: [&str; 7] = ["and", "or", "not", "in", "true", "false", "if"];
