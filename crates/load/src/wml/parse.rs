//! Statements of a workload file, to a tree with variables filled in.

use super::attribute::Attribute;
use super::error::WmlError;
use super::syntax::{ProcessSyntax, Statement, Syntax, ThreadSyntax};
use super::token::{Spanned, Token};
use super::variable::{Value, Variables};

pub(super) struct Parser {
    tokens: Vec<Spanned>,
    next: usize,
    pub(super) variables: Variables,
}

/// Longest run time that a file may ask for: a year.
const LONGEST_RUN_S: f64 = 366.0 * 86400.0;

/// Something else was expected.
fn expected(found: &Spanned, what: &str) -> WmlError {
    let text = if found.token == Token::End {
        format!("the file ends here; expected {what}")
    } else {
        format!("expected {what} here")
    };
    WmlError::new(found.line, &found.word, text)
}

impl Parser {
    pub(super) fn new(tokens: Vec<Spanned>) -> Parser {
        Parser {
            tokens,
            next: 0,
            variables: Variables::default(),
        }
    }

    pub(super) fn file(mut self) -> Result<Syntax, WmlError> {
        let mut syntax = Syntax::default();
        loop {
            let Spanned { token, line, word } = self.advance();
            match token {
                Token::End => return Ok(syntax),
                Token::Word(_) if word == "set" => self.set()?,
                Token::Word(_) if word == "define" => self.define(&mut syntax)?,
                Token::Word(_) if word == "eventgen" => {
                    syntax.eventgen = Some(self.statement(word, line)?);
                }
                Token::Word(_) if word == "run" || word == "psrun" => {
                    if syntax.run_s.is_some() {
                        return Err(WmlError::new(
                            line,
                            &word,
                            "the file has two run statements; one load is run",
                        ));
                    }
                    syntax.run_s = Some(self.run(word == "psrun")?);
                }
                Token::Word(_) if self.passed_over(&word, line)? => {}
                _ => {
                    return Err(WmlError::new(
                        line,
                        &word,
                        "no statement begins so; known: create, define, echo, enable, eventgen, psrun, quit, run, set, usage",
                    ));
                }
            }
        }
    }

    pub(super) fn peek(&self) -> &Spanned {
        &self.tokens[self.next]
    }

    pub(super) fn advance(&mut self) -> Spanned {
        let spanned = self.tokens[self.next].clone();
        // The last token is End; it is never passed.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        spanned
    }

    pub(super) fn at_mark(&self, mark: char) -> bool {
        self.peek().token == Token::Mark(mark)
    }

    pub(super) fn mark(&mut self, mark: char) -> Result<(), WmlError> {
        let found = self.advance();
        if found.token == Token::Mark(mark) {
            return Ok(());
        }
        Err(expected(&found, &format!("'{mark}'")))
    }

    pub(super) fn word(&mut self, what: &str) -> Result<(String, usize), WmlError> {
        let found = self.advance();
        match found.token {
            Token::Word(word) => Ok((word, found.line)),
            _ => Err(expected(&found, what)),
        }
    }

    /// `set $x=value`, `set $x.mean=value`, `set $x=cvar(...)`
    fn set(&mut self) -> Result<(), WmlError> {
        let found = self.advance();
        if found.token == Token::Word("mode".into()) {
            return self.mode();
        }
        let Token::Variable { name, field } = found.token else {
            return Err(WmlError::new(
                found.line,
                &found.word,
                "set needs a variable, as in set $nfiles=1000",
            ));
        };
        self.mark('=')?;
        if let Some(field) = field {
            return self.set_field(&name, &field, found.line, &found.word);
        }
        let value = if self.peek().token == Token::Word("cvar".into()) {
            self.cvar()?
        } else {
            self.value()?
        };
        self.variables.set(&name, value);
        Ok(())
    }

    fn set_field(
        &mut self,
        name: &str,
        field: &str,
        line: usize,
        word: &str,
    ) -> Result<(), WmlError> {
        let value = self.value()?;
        let random = self.variables.random(name, line)?;
        let done = match value {
            Value::Text(kind) if field == "type" => random.set_kind(&kind),
            Value::Number(value) => random.set(field, value, true),
            _ => Err("needs a number".into()),
        };
        done.map_err(|text| WmlError::new(line, word, text))
    }

    /// A number, word, string, true, false, or a variable's value.
    pub(super) fn value(&mut self) -> Result<Value, WmlError> {
        let found = self.advance();
        match found.token {
            Token::Number(value) => Ok(Value::Number(value)),
            Token::Word(word) if word == "true" => Ok(Value::Flag(true)),
            Token::Word(word) if word == "false" => Ok(Value::Flag(false)),
            Token::Word(word) | Token::Text(word) => Ok(Value::Text(word)),
            Token::Variable { name, field: None } => self.variables.get(&name, found.line).cloned(),
            _ => Err(WmlError::new(
                found.line,
                &found.word,
                "expected a number, a word or a variable here",
            )),
        }
    }

    fn define(&mut self, syntax: &mut Syntax) -> Result<(), WmlError> {
        let (word, line) = self.word("file, fileset, process or randvar")?;
        match word.as_str() {
            "file" | "fileset" | "filesets" => {
                let fileset = self.statement(word, line)?;
                syntax.filesets.push(fileset);
            }
            "process" | "processes" => {
                let process = self.process(word, line)?;
                syntax.processes.push(process);
            }
            "randvar" => self.randvar(line)?,
            _ => {
                return Err(WmlError::new(
                    line,
                    &word,
                    "cannot be defined; known: file, fileset, process, randvar",
                ));
            }
        }
        Ok(())
    }

    /// `run`, `run 60`, `run $runtime`; `psrun -10 60` says first how often to print, which happens anyway.
    fn run(&mut self, prints: bool) -> Result<f64, WmlError> {
        if prints && matches!(&self.peek().token, Token::Word(word) if word.starts_with('-')) {
            self.advance();
        }
        let next = self.peek().clone();
        if !matches!(next.token, Token::Number(_) | Token::Variable { .. }) {
            return Ok(60.0);
        }
        match self.value()? {
            Value::Number(value) if value > 0.0 && value <= LONGEST_RUN_S => Ok(value),
            _ => Err(WmlError::new(
                next.line,
                &next.word,
                "run needs seconds, more than 0 and at most a year",
            )),
        }
    }

    /// What a word and the attributes after it say.
    fn statement(&mut self, word: String, line: usize) -> Result<Statement, WmlError> {
        let attributes = self.attributes()?;
        Ok(Statement {
            word,
            line,
            attributes,
        })
    }

    fn process(&mut self, word: String, line: usize) -> Result<ProcessSyntax, WmlError> {
        let statement = self.statement(word, line)?;
        let holds = "a process holds threads only: thread name=... { ... }";
        let threads = self.block("thread", holds, Self::thread)?;
        Ok(ProcessSyntax { statement, threads })
    }

    fn thread(&mut self, word: String, line: usize) -> Result<ThreadSyntax, WmlError> {
        let statement = self.statement(word, line)?;
        let holds = "a thread holds flowops only: flowop KIND name=...";
        let flowops = self.block("flowop", holds, |parser, _, _| {
            let (word, line) = parser.word("the kind of the flowop")?;
            parser.statement(word, line)
        })?;
        Ok(ThreadSyntax { statement, flowops })
    }

    /// `{ ... }` around parts that all begin with the same word; `holds` is what is said of any other.
    fn block<T>(
        &mut self,
        begin: &str,
        holds: &str,
        mut part: impl FnMut(&mut Self, String, usize) -> Result<T, WmlError>,
    ) -> Result<Vec<T>, WmlError> {
        self.mark('{')?;
        let mut parts = Vec::new();
        while !self.at_mark('}') {
            let (word, line) = self.word(&format!("{begin} or '}}'"))?;
            if word != begin {
                return Err(WmlError::new(line, &word, holds));
            }
            parts.push(part(self, word, line)?);
        }
        self.mark('}')?;
        Ok(parts)
    }

    /// `key=value, key, ...`; attributes may go on after a comma on the next line.
    fn attributes(&mut self) -> Result<Vec<Attribute>, WmlError> {
        let mut list = Vec::new();
        loop {
            let (key, line) = self.word("an attribute, as in name=...")?;
            let value = if self.at_mark('=') {
                self.advance();
                Some(self.attribute_value(&key)?)
            } else {
                None
            };
            list.push(Attribute { key, line, value });
            if !self.at_mark(',') {
                return Ok(list);
            }
            self.advance();
        }
    }

    /// Like a value; but `path=$dir` may name the variable even when the file never set it.
    fn attribute_value(&mut self, key: &str) -> Result<Value, WmlError> {
        if key == "path"
            && let Token::Variable { name, field: None } = &self.peek().token
        {
            let text = Value::Text(format!("${name}"));
            self.advance();
            return Ok(text);
        }
        self.value()
    }
}
