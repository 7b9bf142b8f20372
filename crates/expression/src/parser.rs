//! Recursive descent; binary operators by precedence climbing.

use crate::evaluation::Value;
use crate::lexer::{Kind, Token, split};
use crate::{DEPTH_MAX, LENGTH_MAX};

/// A tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Literal(Value),
    Name(String),
    Operation(&'static str, Vec<Node>),
}

/// A formula that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    pub(crate) root: Node,
    names: Vec<String>,
}

/// Operators and how tightly they bind.
const BINDINGS: [(&str, u8); 16] = [
    ("or", 1),
    ("and", 2),
    ("==", 4),
    ("!=", 4),
    ("<", 4),
    ("<=", 4),
    (">", 4),
    (">=", 4),
    ("in", 4),
    ("not in", 4),
    ("+", 5),
    ("-", 5),
    ("*", 6),
    ("/", 6),
    ("neg", 7),
    ("**", 8),
];
const COMPARISON: u8 = 4;
const FUNCTIONS: [(&str, usize, usize); 7] = [
    ("if", 3, 3),
    ("min", 1, LENGTH_MAX),
    ("max", 1, LENGTH_MAX),
    ("abs", 1, 1),
    ("log", 1, 1),
    ("exp", 1, 1),
    ("sqrt", 1, 1),
];
const OPERAND: &str = "a number, a string, a name, a function or '('";

fn binding(operator: &str) -> u8 {
    BINDINGS
        .iter()
        .find(|it| it.0 == operator)
        .map_or(0, |it| it.1)
}

impl Expression {
    /// Reads a formula.
    ///
    /// # Errors
    /// The formula, where it goes wrong, and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().count() > LENGTH_MAX {
            return Err(format!(
                "formula of more than {LENGTH_MAX} characters: write a shorter one"
            ));
        }
        let wrong = |(position, expected): (usize, String)| {
            format!("formula {text:?}, position {position}: expected {expected}")
        };
        let tokens = split(text).map_err(wrong)?;
        let mut parser = Parser {
            tokens,
            index: 0,
            level: 0,
            names: Vec::new(),
        };
        let (root, _) = parser.binary(1).map_err(wrong)?;
        if parser.next().kind != Kind::End {
            return Err(wrong(parser.error("an operator or the end")));
        }
        let mut names = parser.names;
        names.sort();
        names.dedup();
        Ok(Self {
            text: text.to_owned(),
            root,
            names,
        })
    }

    /// The names in it, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

struct Parser {
    tokens: Vec<Token>,
    index: usize,
    level: usize,
    names: Vec<String>,
}

type Parsed = Result<(Node, usize), (usize, String)>;

impl Parser {
    fn next(&self) -> &Token {
        &self.tokens[self.index]
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(&self.next().kind, Kind::Sign(it) if *it == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.next().kind, Kind::Name(it) if it == word)
    }

    fn error(&self, expected: &str) -> (usize, String) {
        (self.next().position, expected.to_owned())
    }

    fn operator(&self) -> Option<&'static str> {
        let word: &str = match &self.next().kind {
            Kind::Sign(sign) => sign,
            Kind::Name(name) if name == "not" => {
                let after = &self.tokens[self.index + 1].kind;
                return matches!(after, Kind::Name(it) if it == "in").then_some("not in");
            }
            Kind::Name(name) => name,
            _ => return None,
        };
        BINDINGS
            .iter()
            .find(|it| it.0 == word && word != "neg")
            .map(|it| it.0)
    }

    /// An operand and each operator behind it that binds at least as tightly; and the depth of the tree.
    fn binary(&mut self, least: u8) -> Parsed {
        self.level += 1;
        if self.level > DEPTH_MAX {
            return Err(self.error(&format!("at most {DEPTH_MAX} levels of nesting")));
        }
        let (mut node, mut depth) = self.operand(least)?;
        let mut compared = false;
        while let Some(operator) = self.operator().filter(|it| binding(it) >= least) {
            let tightness = binding(operator);
            if compared && tightness == COMPARISON {
                return Err(self.error("'and' (comparisons do not chain: write a < b and b < c)"));
            }
            if compared && tightness > COMPARISON {
                return Err(
                    self.error("'and', 'or' or the end (put the comparison in parentheses)")
                );
            }
            compared = tightness == COMPARISON;
            self.index += if operator == "not in" { 2 } else { 1 };
            let (operands, deepest) = if tightness == COMPARISON && operator.ends_with("in") {
                let (elements, deepest) = self.arguments(binding("+"))?;
                let mut operands = vec![node];
                operands.extend(elements);
                (operands, deepest)
            } else {
                let least = match operator {
                    // To the right, and a minus may stand before the exponent.
                    "**" => binding("neg"),
                    _ => tightness + 1,
                };
                let (right, deepest) = self.binary(least)?;
                (vec![node, right], deepest)
            };
            depth = depth.max(deepest) + 1;
            node = Node::Operation(operator, operands);
            if depth > DEPTH_MAX {
                return Err(self.error(&format!("at most {DEPTH_MAX} levels of operations")));
            }
        }
        self.level -= 1;
        Ok((node, depth))
    }

    fn operand(&mut self, least: u8) -> Parsed {
        if self.is_word("not") {
            if least > 3 {
                return Err(self.error(&format!("{OPERAND} (put 'not ...' in parentheses)")));
            }
            self.index += 1;
            let (node, depth) = self.binary(3)?;
            return self.operation("not", vec![node], depth);
        }
        if self.is_sign("-") {
            self.index += 1;
            let (node, depth) = self.binary(binding("neg"))?;
            return self.operation("neg", vec![node], depth);
        }
        self.atom()
    }

    fn operation(&self, operator: &'static str, operands: Vec<Node>, depth: usize) -> Parsed {
        if depth + 1 > DEPTH_MAX {
            return Err(self.error(&format!("at most {DEPTH_MAX} levels of operations")));
        }
        Ok((Node::Operation(operator, operands), depth + 1))
    }

    fn atom(&mut self) -> Parsed {
        let token = self.next().clone();
        let node = match token.kind {
            Kind::Number(number) if number.is_finite() => Node::Literal(Value::Number(number)),
            Kind::Text(text) => Node::Literal(Value::Text(text)),
            Kind::Sign("(") => {
                self.index += 1;
                let inner = self.binary(1)?;
                self.expect(")")?;
                return Ok(inner);
            }
            Kind::Name(name) => return self.named(&name),
            _ => return Err(self.error(OPERAND)),
        };
        self.index += 1;
        Ok((node, 1))
    }

    fn named(&mut self, name: &str) -> Parsed {
        if name == "true" || name == "false" {
            self.index += 1;
            return Ok((Node::Literal(Value::Boolean(name == "true")), 1));
        }
        if matches!(self.tokens[self.index + 1].kind, Kind::Sign("(")) {
            let Some((function, least, most)) = FUNCTIONS.iter().find(|it| it.0 == name) else {
                return Err(self.error("a function: if, min, max, abs, log, exp, sqrt"));
            };
            let position = self.next().position;
            self.index += 1;
            let (operands, depth) = self.arguments(1)?;
            if !(*least..=*most).contains(&operands.len()) {
                return Err((
                    position,
                    format!("{least} arguments of {function}, not {}", operands.len()),
                ));
            }
            return self.operation(function, operands, depth);
        }
        let node = match name {
            "and" | "or" | "not" | "in" | "if" => return Err(self.error(OPERAND)),
            _ => {
                self.names.push(name.to_owned());
                Node::Name(name.to_owned())
            }
        };
        self.index += 1;
        Ok((node, 1))
    }

    fn arguments(&mut self, least: u8) -> Result<(Vec<Node>, usize), (usize, String)> {
        self.expect("(")?;
        let mut nodes = Vec::new();
        let mut deepest = 0;
        loop {
            let (node, depth) = self.binary(least)?;
            nodes.push(node);
            deepest = deepest.max(depth);
            if !self.is_sign(",") {
                break;
            }
            self.index += 1;
        }
        self.expect(")")?;
        Ok((nodes, deepest))
    }

    fn expect(&mut self, sign: &str) -> Result<(), (usize, String)> {
        if !self.is_sign(sign) {
            return Err(self.error(&format!("{sign:?}")));
        }
        self.index += 1;
        Ok(())
    }
}
