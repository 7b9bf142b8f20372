//! What the files of agent and interface have in common: how they are read, ranges, and the way to the server.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::{Fault, Options};

/// Reads the file of `--config`; what is wrong with it is told with its name.
///
/// # Errors
/// When it cannot be read, or `parse` refuses it.
pub fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, Fault>) -> Result<T, Fault> {
    let wrong =
        |what: &dyn std::fmt::Display| Fault(format!("--config {}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    parse(&text).map_err(|fault| wrong(&fault))
}

/// What a text in TOML says.
///
/// # Errors
/// The parser's, with the line that it means.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let line = error
            .span()
            .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        Fault(match line {
            Some(line) => format!("line {line}: {}", error.message()),
            None => error.message().to_owned(),
        })
    })
}

/// A number within bounds.
///
/// # Errors
/// When it is not.
pub fn range(key: &str, value: f64, low: f64, high: f64) -> Result<(), Fault> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Fault(format!(
        "{key} = {value}: allowed are {low} to {high}"
    )))
}

/// The way to the server: one of a connection file and what would be in it.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// The key `connection`.
    pub connection: Option<&'a Path>,
    /// The table `[messaging]`.
    pub messaging: Option<&'a Options>,
}

impl Way<'_> {
    /// Checks all that can be checked without reading another file.
    ///
    /// # Errors
    /// When both are given, or none, or a key is wrong.
    pub fn check(self) -> Result<(), Fault> {
        match (self.connection, self.messaging) {
            (Some(_), None) => Ok(()),
            (None, Some(options)) => options.check(),
            _ => Err(Fault(
                "connection, [messaging]: give one of them: a connection file or its keys"
                    .to_owned(),
            )),
        }
    }

    /// How to connect. A connection file is read anew each time, so that a new password needs no restart.
    ///
    /// # Errors
    /// When that file is wrong.
    pub fn options(self) -> Result<Options, Fault> {
        match (self.messaging, self.connection) {
            (Some(options), _) => Ok(options.clone()),
            (None, Some(path)) => Options::read(path),
            (None, None) => Err(Fault("connection: is missing".to_owned())),
        }
    }
}
