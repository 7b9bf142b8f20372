//! `key=value, key, ...`: attributes with their places, taken out one by one and type-checked.

use super::error::WmlError;
use super::variable::Value;
use crate::quantity::Quantity;

/// One attribute as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attribute {
    pub(super) key: String,
    pub(super) line: usize,
    /// `None` for a bare key, which means true.
    pub(super) value: Option<Value>,
}

impl Attribute {
    fn wrong(&self, text: impl AsRef<str>) -> WmlError {
        WmlError::new(self.line, &self.key, text.as_ref())
    }

    /// A number that is fixed and lies in a range.
    fn number(&self, low: f64, high: f64) -> Result<f64, WmlError> {
        match &self.value {
            Some(Value::Number(value)) if (low..=high).contains(value) => Ok(*value),
            Some(Value::Number(value)) => {
                Err(self.wrong(format!("must lie between {low} and {high}, but is {value}")))
            }
            Some(Value::Random(_)) => {
                Err(self.wrong("must be a fixed number, not a random variable"))
            }
            _ => Err(self.wrong(format!("needs a number between {low} and {high}"))),
        }
    }

    fn flag(&self) -> Result<bool, WmlError> {
        match &self.value {
            None => Ok(true),
            Some(Value::Flag(flag)) => Ok(*flag),
            Some(Value::Number(value)) if *value == 0.0 || *value == 1.0 => Ok(*value == 1.0),
            _ => Err(self.wrong("needs true or false (or 1 or 0)")),
        }
    }

    fn quantity(&self, high: f64) -> Result<Quantity, WmlError> {
        match &self.value {
            Some(Value::Random(text)) => {
                let variable = text.variable().map_err(|text| self.wrong(text))?;
                let quantity = Quantity::Drawn(variable);
                if quantity.mean() > high {
                    return Err(self.wrong(format!(
                        "its mean must be at most {high}, but is {}",
                        quantity.mean()
                    )));
                }
                Ok(quantity)
            }
            Some(Value::Number(_)) => Ok(Quantity::Fixed(self.number(0.0, high)?)),
            _ => Err(self.wrong("needs a number or a random variable")),
        }
    }

    fn text(&self) -> Result<&str, WmlError> {
        match &self.value {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(self.wrong("needs a word")),
        }
    }
}

/// The attributes of one statement. What nobody takes is refused by [`Attributes::done`].
pub(super) struct Attributes {
    list: Vec<Attribute>,
    /// What they belong to, for messages: `flowop read`.
    owner: String,
    line: usize,
    asked: Vec<&'static str>,
}

impl Attributes {
    pub(super) fn new(
        list: Vec<Attribute>,
        owner: impl Into<String>,
        line: usize,
    ) -> Result<Attributes, WmlError> {
        for (place, attribute) in list.iter().enumerate() {
            if list[..place]
                .iter()
                .any(|earlier| earlier.key == attribute.key)
            {
                return Err(attribute.wrong("given twice"));
            }
        }
        Ok(Attributes {
            list,
            owner: owner.into(),
            line,
            asked: Vec::new(),
        })
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Attribute> {
        self.asked.push(key);
        let place = self
            .list
            .iter()
            .position(|attribute| attribute.key == key)?;
        Some(self.list.remove(place))
    }

    /// Bring an attribute's older name to its present one.
    pub(super) fn rename(&mut self, old: &str, new: &str) -> Result<(), WmlError> {
        let both = self.list.iter().any(|a| a.key == new);
        for attribute in &mut self.list {
            if attribute.key == old {
                if both {
                    return Err(
                        attribute.wrong(format!("means the same as {new}, which is given too"))
                    );
                }
                new.clone_into(&mut attribute.key);
            }
        }
        Ok(())
    }

    pub(super) fn number(
        &mut self,
        key: &'static str,
        low: f64,
        high: f64,
    ) -> Result<Option<f64>, WmlError> {
        self.take(key)
            .map(|attribute| attribute.number(low, high))
            .transpose()
    }

    pub(super) fn whole(
        &mut self,
        key: &'static str,
        low: u64,
        high: u64,
    ) -> Result<Option<u64>, WmlError> {
        let Some(attribute) = self.take(key) else {
            return Ok(None);
        };
        let value = attribute.number(low as f64, high as f64)?;
        if value.fract() != 0.0 {
            return Err(attribute.wrong(format!("must be a whole number, but is {value}")));
        }
        Ok(Some(value as u64))
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Result<bool, WmlError> {
        Ok(self
            .take(key)
            .map(|attribute| attribute.flag())
            .transpose()?
            .unwrap_or(false))
    }

    pub(super) fn quantity(
        &mut self,
        key: &'static str,
        high: f64,
    ) -> Result<Option<Quantity>, WmlError> {
        self.take(key)
            .map(|attribute| attribute.quantity(high))
            .transpose()
    }

    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<String>, WmlError> {
        self.take(key)
            .map(|attribute| attribute.text().map(str::to_owned))
            .transpose()
    }

    /// A name: letters, digits, `_`, `-`, `.`, not beginning with a dot, at most 100 long.
    pub(super) fn name(&mut self) -> Result<String, WmlError> {
        let Some(attribute) = self.take("name") else {
            return Err(WmlError::new(
                self.line,
                &self.owner,
                "needs an attribute name",
            ));
        };
        let name = attribute.text()?;
        let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(safe) {
            return Err(WmlError::new(
                attribute.line,
                name,
                "a name has letters, digits, '_', '-', '.', begins without a dot and is at most 100 long",
            ));
        }
        Ok(name.to_owned())
    }

    /// Refuse what is left.
    pub(super) fn done(mut self) -> Result<(), WmlError> {
        match self.list.first() {
            None => Ok(()),
            Some(left) => {
                self.asked.sort_unstable();
                self.asked.dedup();
                Err(left.wrong(format!(
                    "{} has no such attribute; known: {}",
                    self.owner,
                    self.asked.join(", ")
                )))
            }
        }
    }

    pub(super) fn line(&self) -> usize {
        self.line
    }
}
