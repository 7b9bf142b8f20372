//! What the files of agent and interface have in common: how they are read, ranges, and the way to the server.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::{Fault, Options};

/// The file of `--config`, in TOML.
pub trait ConfigFile: DeserializeOwned {
    /// Checks all that can be checked without reading another file.
    ///
    /// # Errors
    /// When a key is wrong: its name, its value, what is allowed.
    fn check(&self) -> Result<(), Fault>;

    /// Its paths, which are relative to its folder.
    fn paths(&mut self) -> Vec<&mut PathBuf>;

    /// How to connect.
    fn way(&self) -> Way<'_>;

    /// Reads and checks a file.
    ///
    /// # Errors
    /// When it cannot be read, or a key is wrong; with the file's name.
    fn read(path: &Path) -> Result<Self, Fault> {
        let wrong =
            |what: &dyn std::fmt::Display| Fault(format!("--config {}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let mut file = Self::parse(&text).map_err(|fault| wrong(&fault))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        for one in file.paths() {
            *one = folder.join(&*one);
        }
        Ok(file)
    }

    /// The same from a text.
    ///
    /// # Errors
    /// As [`ConfigFile::check`].
    fn parse(text: &str) -> Result<Self, Fault> {
        let file: Self = parse(text)?;
        file.check()?;
        Ok(file)
    }

    /// How to connect. A connection file is read anew each time, so that a new password needs no restart.
    ///
    /// # Errors
    /// When that file is wrong.
    fn options(&self) -> Result<Options, Fault> {
        self.way().options()
    }
}

/// What a text in TOML says.
///
/// # Errors
/// The parser's, with the line that it means.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
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

    /// The options that it leads to.
    ///
    /// # Errors
    /// When the connection file is wrong.
    fn options(self) -> Result<Options, Fault> {
        match (self.messaging, self.connection) {
            (Some(options), _) => Ok(options.clone()),
            (None, Some(path)) => Options::read(path),
            (None, None) => Err(Fault("connection: is missing".to_owned())),
        }
    }
}
