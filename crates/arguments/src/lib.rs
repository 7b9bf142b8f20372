//! The command lines of the node binary.
//!
//! `lexopt` splits the words; the help text lists the options. An option is known exactly if a line of the help
//! describes it, so help and parser cannot differ. A mistake is one line: the option, its value, what is allowed.

#![deny(clippy::print_stderr, clippy::print_stdout)]

mod options;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

use options::Described;

/// What is wrong with a command line, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake(pub String);

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Mistake {}

/// Writes what was asked for to standard output, where `println!` would panic on a full disk.
///
/// # Errors
/// When it cannot be written. A reader who has seen enough (`| head`) is none.
pub fn show(text: &str) -> Result<(), Mistake> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Mistake(format!("write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// One word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// An option that the help describes, by its long name with both dashes.
    Option(&'static str),
    /// A word that is not an option.
    Value(OsString),
}

/// The words of a command line, one after another.
pub struct Arguments {
    parser: lexopt::Parser,
    options: Vec<Described>,
    present: Option<Described>,
    given: Vec<&'static str>,
}

impl Arguments {
    /// Reads words, without the program's name, by the options that `help` describes.
    pub fn new(help: &'static str, words: impl Iterator<Item = OsString>) -> Self {
        // The parser reads lazily but wants an iterator that lives as long as it does.
        let words: Vec<OsString> = words.collect();
        Self {
            parser: lexopt::Parser::from_args(words),
            options: options::described(help),
            present: None,
            given: Vec::new(),
        }
    }

    /// The next word; None after the last.
    ///
    /// # Errors
    /// An option that the help does not describe, or a value for one that takes none.
    pub fn next_word(&mut self) -> Result<Option<Word>, Mistake> {
        let found = match self.parser.next() {
            Err(error) => return Err(Mistake(error.to_string())),
            Ok(None) => return Ok(None),
            Ok(Some(lexopt::Arg::Value(value))) => return Ok(Some(Word::Value(value))),
            Ok(Some(lexopt::Arg::Long(name))) => format!("--{name}"),
            Ok(Some(lexopt::Arg::Short(name))) => format!("-{name}"),
        };
        let Some(option) = self.options.iter().find(|option| option.is(&found)) else {
            return Err(self.unknown(&found));
        };
        if option.metavar.is_empty()
            && let Some(value) = self.parser.optional_value()
        {
            return Err(Mistake(format!(
                "{} = {value:?}: the option takes no value",
                option.name
            )));
        }
        self.present = Some(*option);
        Ok(Some(Word::Option(option.name)))
    }

    /// The present option's value, which is given once.
    ///
    /// # Errors
    /// The option has no value after it, or appears twice.
    pub fn value(&mut self) -> Result<OsString, Mistake> {
        let option = self.present();
        if self.given.contains(&option.name) {
            return Err(Mistake(format!(
                "{}: is given twice; give it once",
                option.name
            )));
        }
        self.given.push(option.name);
        self.parser.value().map_err(|_| {
            Mistake(format!(
                "{}: needs a value after it: {}",
                option.name, option.metavar
            ))
        })
    }

    /// The present option's value as a path.
    ///
    /// # Errors
    /// As [`Arguments::value`].
    pub fn path(&mut self) -> Result<PathBuf, Mistake> {
        self.value().map(PathBuf::from)
    }

    /// The present option's value as text.
    ///
    /// # Errors
    /// As [`Arguments::value`], and for bytes that are not UTF-8.
    pub fn text(&mut self) -> Result<String, Mistake> {
        let name = self.present().name;
        self.value()?
            .into_string()
            .map_err(|value| Mistake(format!("{name} = {value:?}: is not UTF-8 text")))
    }

    /// The present option's value as a number from `low` to `high`.
    ///
    /// # Errors
    /// As [`Arguments::text`], and for anything but such a number.
    pub fn number<T>(&mut self, low: T, high: T) -> Result<T, Mistake>
    where
        T: FromStr + PartialOrd + fmt::Display,
    {
        let name = self.present().name;
        let text = self.text()?;
        match text.parse::<T>() {
            Ok(value) if value >= low && value <= high => Ok(value),
            _ => Err(Mistake(format!(
                "{name} = {text:?}: must be a number from {low} to {high}"
            ))),
        }
    }

    /// The words that were not read yet, once a value has been read: those of a subcommand.
    #[must_use]
    pub fn rest(mut self) -> Vec<OsString> {
        self.parser
            .raw_args()
            .map_or_else(|_| Vec::new(), Iterator::collect)
    }

    /// The refusal of a word, with the options that are allowed.
    #[must_use]
    pub fn unknown(&self, word: impl AsRef<std::ffi::OsStr>) -> Mistake {
        let allowed: Vec<String> = self.options.iter().map(ToString::to_string).collect();
        Mistake(format!(
            "{:?}: unknown argument; allowed: {}",
            word.as_ref(),
            allowed.join(", ")
        ))
    }

    fn present(&self) -> Described {
        self.present.expect("an option was read before its value")
    }
}

#[cfg(test)]
mod tests;
