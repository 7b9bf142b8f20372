//! A parsed formula.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::LENGTH_MAX;
use crate::evaluation::evaluate;
use crate::parser::tree_of;
use crate::text::{literal, quoted, text_of};
use crate::tree::{Node, Operator, Value};

/// How much of a formula that is too long an error shows.
const SHOWN_OF_LONG: usize = 40;

/// A parsed formula. Equal where the trees are equal; its text is canonical and parses to it.
#[derive(Clone, Debug)]
pub struct Expression {
    root: Node,
    text: String,
    names: Vec<String>,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for Expression {}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Expression {
    /// Parses a formula.
    ///
    /// # Errors
    /// One line with the text, the position (from 1) and what was expected there; or that the formula is too long.
    pub fn parse(text: &str) -> Result<Self, String> {
        let begin = || quoted(&text.chars().take(SHOWN_OF_LONG).collect::<String>());
        let length = text.chars().count();
        if length > LENGTH_MAX {
            let begin = begin();
            return Err(format!(
                "formula {begin}... has {length} characters; at most {LENGTH_MAX}"
            ));
        }
        let root = tree_of(text)?;
        let canonical = text_of(&root, 0);
        if canonical.chars().count() > LENGTH_MAX {
            let begin = begin();
            return Err(format!(
                "formula {begin}... has more than {LENGTH_MAX} characters when spaced; split it"
            ));
        }
        Ok(Self::of(root, canonical))
    }

    fn of(root: Node, text: String) -> Self {
        let mut names = Vec::new();
        collect(&root, &mut names);
        Self { root, text, names }
    }

    /// Of a comparison, its sign and its signed terms: those of the left side less those of the right side, whose sum
    /// compares with 0 as the two sides compare. None where it is no comparison of two values.
    pub fn terms(&self) -> Option<(&'static str, Vec<(f64, Self)>)> {
        let Node::Operation(operator, operands) = &self.root else {
            return None;
        };
        if !operator.compares() || *operator == Operator::In {
            return None;
        }
        let mut found = Vec::new();
        add_terms(&operands[0], 1.0, &mut found);
        add_terms(&operands[1], -1.0, &mut found);
        let terms = found
            .into_iter()
            .map(|(sign, node)| (sign, Self::of(node.clone(), text_of(node, 0))));
        Some((operator.sign(), terms.collect()))
    }

    /// The names that it mentions, each once, in order of first mention.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Its value; [`Value::None`] where it is n/a.
    ///
    /// `lookup` gives a name's value; its errors are passed on.
    ///
    /// # Errors
    /// A kind does not fit, or a result is not finite.
    pub fn evaluate_or_none<E: From<String>>(
        &self,
        lookup: &dyn Fn(&str) -> Result<Value, E>,
    ) -> Result<Value, E> {
        evaluate(&self.root, lookup)
    }

    /// Its value, where n/a is an error.
    ///
    /// # Errors
    /// As [`Self::evaluate_or_none`], and where the result is n/a.
    pub fn evaluate<E: From<String>>(
        &self,
        lookup: &dyn Fn(&str) -> Result<Value, E>,
    ) -> Result<Value, E> {
        let value = self.evaluate_or_none(lookup)?;
        if value != Value::None {
            return Ok(value);
        }
        let is_absent = |name: &&str| matches!(lookup(name), Ok(Value::None));
        let names = self.names.iter().map(String::as_str);
        let absent: Vec<&str> = names.filter(is_absent).collect();
        Err(E::from(format!(
            "{self} is n/a: {} not active; use it only where they are",
            absent.join(", ")
        )))
    }

    /// Its value, which must be a number.
    ///
    /// # Errors
    /// As [`Self::evaluate`], and where the result is not a number.
    pub fn number<E: From<String>>(
        &self,
        lookup: &dyn Fn(&str) -> Result<Value, E>,
    ) -> Result<f64, E> {
        match self.evaluate(lookup)? {
            Value::Number(number) => Ok(number),
            other => Err(E::from(format!(
                "{self} is {}, not a number; write a formula that gives a number",
                literal(&other)
            ))),
        }
    }

    /// Whether it is true; None where it is n/a.
    ///
    /// # Errors
    /// As [`Self::evaluate_or_none`], and where the result is neither true nor false.
    pub fn holds<E: From<String>>(
        &self,
        lookup: &dyn Fn(&str) -> Result<Value, E>,
    ) -> Result<Option<bool>, E> {
        match self.evaluate_or_none(lookup)? {
            Value::Boolean(value) => Ok(Some(value)),
            Value::None => Ok(None),
            other => Err(E::from(format!(
                "{self} is {}, not true or false; write a comparison",
                literal(&other)
            ))),
        }
    }
}

fn collect(node: &Node, names: &mut Vec<String>) {
    match node {
        Node::Literal(_) => {}
        Node::Name(name) if names.contains(name) => {}
        Node::Name(name) => names.push(name.clone()),
        Node::Operation(_, operands) => {
            for operand in operands {
                collect(operand, names);
            }
        }
    }
}

fn add_terms<'a>(node: &'a Node, sign: f64, found: &mut Vec<(f64, &'a Node)>) {
    match node {
        Node::Operation(Operator::Add, operands) => {
            add_terms(&operands[0], sign, found);
            add_terms(&operands[1], sign, found);
        }
        Node::Operation(Operator::Subtract, operands) => {
            add_terms(&operands[0], sign, found);
            add_terms(&operands[1], -sign, found);
        }
        Node::Operation(Operator::Negate, operands) => add_terms(&operands[0], -sign, found),
        _ => found.push((sign, node)),
    }
}
