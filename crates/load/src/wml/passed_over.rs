//! Statements of Filebench's own files that change nothing here: what they ask for is done anyway, or is talk.

use super::error::WmlError;
use super::parse::Parser;
use super::token::Token;

impl Parser {
    /// Whether a statement that begins with this word was read over.
    pub(super) fn passed_over(&mut self, word: &str, line: usize) -> Result<bool, WmlError> {
        match word {
            "echo" | "usage" => self.talk()?,
            // Files are made before each run, threads begin with it.
            "create" => self.one_of(
                word,
                &[
                    "file",
                    "files",
                    "fileset",
                    "filesets",
                    "process",
                    "processes",
                ],
            )?,
            // Every latency goes into a histogram.
            "enable" => self.one_of(word, &["lathist"])?,
            // Nothing after the run: the load ends then.
            "quit" => {}
            "system" => {
                let text = "commands are not run; do before `ascard load` what this line asks for, and remove it";
                return Err(WmlError::new(line, word, text));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `set mode quit timeout | alldone | firstdone`: when no file is left to work on, a load ends with either.
    pub(super) fn mode(&mut self) -> Result<(), WmlError> {
        self.one_of("set mode", &["quit"])?;
        self.one_of("set mode quit", &["alldone", "firstdone", "timeout"])
    }

    /// A text for people: one string, or one word or variable, whether it was set or not.
    fn talk(&mut self) -> Result<(), WmlError> {
        let found = self.advance();
        match found.token {
            Token::Text(_) | Token::Word(_) | Token::Variable { .. } => Ok(()),
            _ => Err(WmlError::new(
                found.line,
                &found.word,
                "expected a text in quotes here",
            )),
        }
    }

    fn one_of(&mut self, after: &str, allowed: &[&str]) -> Result<(), WmlError> {
        let (word, line) = self.word(&format!("a word after {after}"))?;
        if allowed.contains(&word.as_str()) {
            return Ok(());
        }
        let text = format!("not known after {after}; known: {}", allowed.join(", "));
        Err(WmlError::new(line, &word, text))
    }
}
