//! The workload language: the part of Filebench's WML that its personalities use, and nothing else.
//!
//! `set`, `define fileset | file | process | randvar`, `thread`, `flowop`, `eventgen`, `run`, `psrun`; what only
//! speaks to people or says what is done anyway (`echo`, `usage`, `create files`, `set mode quit`) is read over. A
//! file with any other word is refused with its line; no input makes the parser panic.

mod attribute;
mod check;
mod error;
mod fileset;
mod parse;
mod passed_over;
mod randvar;
mod slots;
mod syntax;
mod token;
mod variable;

pub use check::MOST_THREADS;
pub use error::WmlError;

use crate::definition::Definition;

/// Longest workload file read; a personality has about 2 KiB.
pub const LONGEST_BYTES: usize = 1 << 20;

/// Read and check a workload file's text.
///
/// # Errors
/// The first thing that is not understood, or does not fit together, with its line and word.
pub fn parse(text: &str) -> Result<Definition, WmlError> {
    if text.len() > LONGEST_BYTES {
        return Err(WmlError::new(
            1,
            "",
            format!("the file is longer than {LONGEST_BYTES} bytes"),
        ));
    }
    let tokens = token::tokens(text)?;
    let syntax = parse::Parser::new(tokens).file()?;
    check::definition(syntax)
}
