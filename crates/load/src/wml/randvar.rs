//! Random variables as written: `cvar(...)` after `set`, and `define randvar`.

use super::error::WmlError;
use super::parse::Parser;
use super::token::Token;
use super::variable::{RandomText, Value};

impl Parser {
    /// `cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5[,min=..][,max=..][,round=..])`
    pub(super) fn cvar(&mut self) -> Result<Value, WmlError> {
        let start = self.advance();
        let mut random = RandomText::default();
        self.mark('(')?;
        loop {
            let (key, line) = self.word("type, parameters, min, max or round")?;
            self.mark('=')?;
            match key.as_str() {
                "type" => {
                    let (kind, line) = self.word("cvar-gamma or cvar-uniform")?;
                    random
                        .set_kind(&kind)
                        .map_err(|text| WmlError::new(line, &kind, text))?;
                }
                "parameters" => self.cvar_parameters(&mut random)?,
                "min" | "max" | "round" => self.field(&mut random, &key, line)?,
                _ => {
                    return Err(WmlError::new(
                        line,
                        &key,
                        "cvar knows type, parameters, min, max and round",
                    ));
                }
            }
            let found = self.advance();
            match found.token {
                Token::Mark(',') => {}
                Token::Mark(')') => break,
                _ => {
                    return Err(WmlError::new(
                        found.line,
                        &found.word,
                        "expected ',' or ')' here",
                    ));
                }
            }
        }
        random
            .variable()
            .map_err(|text| WmlError::new(start.line, &start.word, text))?;
        Ok(Value::Random(random))
    }

    fn cvar_parameters(&mut self, random: &mut RandomText) -> Result<(), WmlError> {
        loop {
            let (key, line) = self.word("a parameter, as in mean:16384")?;
            if !matches!(key.as_str(), "mean" | "gamma" | "lower" | "upper") {
                return Err(WmlError::new(
                    line,
                    &key,
                    "parameters are mean and gamma, or lower and upper",
                ));
            }
            self.mark(':')?;
            self.field(random, &key, line)?;
            if !self.at_mark(';') {
                return Ok(());
            }
            self.advance();
        }
    }

    fn field(&mut self, random: &mut RandomText, key: &str, line: usize) -> Result<(), WmlError> {
        match self.value()? {
            Value::Number(value) => random
                .set(key, value, false)
                .map_err(|text| WmlError::new(line, key, text)),
            _ => Err(WmlError::new(line, key, "needs a number")),
        }
    }

    /// `define randvar name=$x,type=gamma,mean=..,gamma=1500,min=..,round=..`
    pub(super) fn randvar(&mut self, start: usize) -> Result<(), WmlError> {
        let mut random = RandomText::default();
        let mut name = None;
        loop {
            let (key, line) = self.word("an attribute of randvar")?;
            self.mark('=')?;
            if key == "name" {
                let found = self.advance();
                let Token::Variable {
                    name: found_name,
                    field: None,
                } = found.token
                else {
                    return Err(WmlError::new(
                        found.line,
                        &found.word,
                        "randvar's name is a variable, as in name=$size",
                    ));
                };
                name = Some(found_name);
            } else {
                let done = match self.value()? {
                    Value::Text(kind) if key == "type" => {
                        random.set_kind(&kind).map_err(|text| (kind, text))
                    }
                    Value::Number(value) => {
                        random.set(&key, value, true).map_err(|text| (key, text))
                    }
                    _ => Err((key, "needs a number".into())),
                };
                done.map_err(|(word, text)| WmlError::new(line, &word, text))?;
            }
            if !self.at_mark(',') {
                break;
            }
            self.advance();
        }
        let name =
            name.ok_or_else(|| WmlError::new(start, "randvar", "needs an attribute name=$NAME"))?;
        self.variables.set(&name, Value::Random(random));
        Ok(())
    }
}
