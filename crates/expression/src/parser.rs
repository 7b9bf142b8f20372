//! Recursive descent; binary operators by precedence climbing.

use crate::lexer::{Kind, Token, split};
use crate::text::quoted;
use crate::tree::{Node, Operator, Value};
use crate::{DEPTH_MAX, LENGTH_MAX, RESERVED};

const OPERAND: &str = "a number, a string, a name, a function or '('";
/// The longest text that an error shows whole, and how much of a longer one.
const SHOWN_MAX: usize = 120;
const SHOWN_OF_LONGER: usize = 117;

/// Reads the tree of a text, all of it.
///
/// # Errors
/// One line with the text, the position and what was expected there.
pub(crate) fn tree_of(text: &str) -> Result<Node, String> {
    let wrong = |(position, expected): Fault| {
        let longer = text.chars().count() > SHOWN_MAX;
        let shown: String = if longer {
            text.chars()
                .take(SHOWN_OF_LONGER)
                .chain("...".chars())
                .collect()
        } else {
            text.to_owned()
        };
        let shown = quoted(&shown);
        format!("formula {shown}, position {position}: expected {expected}")
    };
    let mut parser = Parser {
        tokens: split(text).map_err(wrong)?,
        index: 0,
        level: 0,
    };
    parser.whole().map_err(wrong)
}

/// A position, from one, and what was expected there.
type Fault = (usize, String);
/// A node and the depth of its tree.
type Parsed = Result<(Node, usize), Fault>;

/// One parse of one text; `level` guards the stack.
struct Parser {
    tokens: Vec<Token>,
    index: usize,
    level: usize,
}

impl Parser {
    fn whole(&mut self) -> Result<Node, Fault> {
        let (node, _) = self.binary(Operator::Or.binding())?;
        match self.next().kind {
            Kind::End => Ok(node),
            _ => Err(self.error("an operator or the end")),
        }
    }

    fn next(&self) -> &Token {
        &self.tokens[self.index]
    }

    fn is_sign(&self, sign: &str) -> bool {
        self.next().kind == Kind::Sign && self.next().text == sign
    }

    fn is_word(&self, word: &str) -> bool {
        self.next().kind == Kind::Name && self.next().text == word
    }

    /// What was expected instead of the next token.
    fn error(&self, expected: &str) -> Fault {
        let Token {
            kind,
            position,
            text,
        } = self.next();
        let found = match kind {
            Kind::End => text.clone(),
            _ => quoted(text),
        };
        (*position, format!("{expected}, found {found}"))
    }

    /// The next tokens as an operator between two operands; "not in" is `Not`.
    fn operator(&self) -> Option<Operator> {
        let Token { kind, text, .. } = self.next();
        match kind {
            Kind::Name if text == "not" => {
                let after = &self.tokens[self.index + 1];
                (after.kind == Kind::Name && after.text == "in").then_some(Operator::Not)
            }
            Kind::Name | Kind::Sign => Operator::infix(text),
            _ => None,
        }
    }

    /// An operand and each operator behind it that binds at least as tightly.
    fn binary(&mut self, least: u8) -> Parsed {
        self.level += 1;
        if self.level > DEPTH_MAX {
            return Err(self.error(&format!("at most {DEPTH_MAX} levels of nesting")));
        }
        let (mut node, mut depth) = self.operand(least)?;
        let mut compared = false;
        while let Some(operator) = self.operator() {
            let comparison = Operator::In.binding();
            let binding = match operator {
                Operator::Not => comparison,
                other => other.binding(),
            };
            if binding < least {
                break;
            }
            if compared && binding == comparison {
                return Err(self.error("'and' (comparisons do not chain: write a < b and b < c)"));
            }
            if compared && binding > comparison {
                return Err(
                    self.error("'and', 'or' or the end (put the comparison in parentheses)")
                );
            }
            compared = binding == comparison;
            self.index += 1;
            (node, depth) = self.join(operator, node, depth)?;
        }
        self.level -= 1;
        Ok((node, depth))
    }

    /// The operation of an operator that was taken.
    fn join(&mut self, operator: Operator, left: Node, depth: usize) -> Parsed {
        let least = match operator {
            Operator::In => return self.membership(left, depth),
            Operator::Not => {
                self.index += 1;
                let (node, depth) = self.membership(left, depth)?;
                return self.operation(Operator::Not, vec![node], depth);
            }
            // To the right, and a minus may stand before the exponent; the others to the left.
            Operator::Power => Operator::Negate.binding(),
            other => other.binding() + 1,
        };
        let (right, deepest) = self.binary(least)?;
        self.operation(operator, vec![left, right], depth.max(deepest))
    }

    fn membership(&mut self, left: Node, depth: usize) -> Parsed {
        self.expect("(", "'(' and the values after 'in'")?;
        let mut operands = vec![left];
        let deepest = self.list(&mut operands, Operator::Add.binding())?;
        self.operation(Operator::In, operands, depth.max(deepest))
    }

    fn operand(&mut self, least: u8) -> Parsed {
        let operator = if self.is_word("not") {
            if least > Operator::Not.binding() {
                return Err(self.error(&format!("{OPERAND} (put 'not ...' in parentheses)")));
            }
            Operator::Not
        } else if self.is_sign("-") {
            Operator::Negate
        } else {
            return self.atom();
        };
        self.index += 1;
        let (node, depth) = self.binary(operator.binding())?;
        self.operation(operator, vec![node], depth)
    }

    fn atom(&mut self) -> Parsed {
        let value = match &self.next().kind {
            Kind::Number(number) if !number.is_finite() => {
                return Err(self.error("a finite number"));
            }
            Kind::Number(number) => Value::Number(*number),
            Kind::Text(text) => Value::Text(text.clone()),
            Kind::Name => return self.named(),
            Kind::Sign if self.is_sign("(") => {
                self.index += 1;
                let inner = self.binary(Operator::Or.binding())?;
                self.expect(")", "')'")?;
                return Ok(inner);
            }
            _ => return Err(self.error(OPERAND)),
        };
        self.index += 1;
        Ok((Node::Literal(value), 1))
    }

    fn named(&mut self) -> Parsed {
        let name = self.next().text.clone();
        let after = &self.tokens[self.index + 1];
        let node = match name.as_str() {
            "true" | "false" => Node::Literal(Value::Boolean(name == "true")),
            _ if after.kind == Kind::Sign && after.text == "(" => return self.call(&name),
            "if" => return Err(self.error("if(condition, then, otherwise)")),
            word if RESERVED.contains(&word) => return Err(self.error(OPERAND)),
            _ => Node::Name(name),
        };
        self.index += 1;
        Ok((node, 1))
    }

    fn call(&mut self, name: &str) -> Parsed {
        let Some(function) = Operator::function(name) else {
            let all = Operator::FUNCTIONS.map(Operator::sign).join(", ");
            return Err(self.error(&format!("one of the functions {all}")));
        };
        let position = self.next().position;
        let (fewest, most) = match function {
            Operator::If => (3, 3),
            Operator::Min | Operator::Max => (1, LENGTH_MAX),
            _ => (1, 1),
        };
        self.index += 2;
        let mut operands = Vec::new();
        let depth = self.list(&mut operands, Operator::Or.binding())?;
        let count = operands.len();
        if !(fewest..=most).contains(&count) {
            let plural = if fewest > 1 { "s" } else { "" };
            let expected = format!("{name}(...) with {fewest} argument{plural}, not {count}");
            return Err((position, expected));
        }
        self.operation(function, operands, depth)
    }

    /// Operands up to and with the closing parenthesis; the depth of the deepest.
    fn list(&mut self, operands: &mut Vec<Node>, least: u8) -> Result<usize, Fault> {
        let mut deepest = 0;
        loop {
            let (node, depth) = self.binary(least)?;
            operands.push(node);
            deepest = deepest.max(depth);
            if !self.is_sign(",") {
                break;
            }
            self.index += 1;
        }
        self.expect(")", "',' or ')'")?;
        Ok(deepest)
    }

    fn expect(&mut self, sign: &str, expected: &str) -> Result<(), Fault> {
        if !self.is_sign(sign) {
            return Err(self.error(expected));
        }
        self.index += 1;
        Ok(())
    }

    fn operation(&self, operator: Operator, operands: Vec<Node>, depth: usize) -> Parsed {
        if depth >= DEPTH_MAX {
            return Err(self.error(&format!(
                "a formula of at most {DEPTH_MAX} levels of operations; split it"
            )));
        }
        Ok((Node::Operation(operator, operands), depth + 1))
    }
}
