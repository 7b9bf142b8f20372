//! The tree of a formula.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A finite number.
    Number(f64),
    /// A word.
    Text(String),
    /// True or false.
    Boolean(bool),
    /// Not applicable: the value of a name that has none now.
    None,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Literal(Value),
    Name(String),
    Operation(Operator, Vec<Node>),
}

/// Operators and functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Not,
    In,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Negate,
    Power,
    If,
    Min,
    Max,
    Abs,
    Log,
    Exp,
    Sqrt,
}

use Operator::{
    Abs, Add, And, Divide, Equal, Exp, Greater, GreaterOrEqual, If, In, Less, LessOrEqual, Log,
    Max, Min, Multiply, Negate, Not, Or, Power, Sqrt, Subtract, Unequal,
};

/// How tightly literals, names and calls bind: tighter than every operator.
pub(crate) const ATOM: u8 = 9;

impl Operator {
    /// Those that stand between two operands.
    const INFIX: [Self; 14] = [
        Or,
        And,
        In,
        Equal,
        Unequal,
        Less,
        LessOrEqual,
        Greater,
        GreaterOrEqual,
        Add,
        Subtract,
        Multiply,
        Divide,
        Power,
    ];
    /// Those that are called.
    pub(crate) const FUNCTIONS: [Self; 7] = [If, Min, Max, Abs, Log, Exp, Sqrt];

    /// The operator that a sign or word between two operands stands for.
    pub(crate) fn infix(text: &str) -> Option<Self> {
        Self::INFIX.into_iter().find(|it| it.sign() == text)
    }

    /// The function of a name.
    pub(crate) fn function(name: &str) -> Option<Self> {
        Self::FUNCTIONS.into_iter().find(|it| it.sign() == name)
    }

    /// As it is written.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Or => "or",
            And => "and",
            Not => "not",
            In => "in",
            Equal => "==",
            Unequal => "!=",
            Less => "<",
            LessOrEqual => "<=",
            Greater => ">",
            GreaterOrEqual => ">=",
            Add => "+",
            Subtract | Negate => "-",
            Multiply => "*",
            Divide => "/",
            Power => "**",
            If => "if",
            Min => "min",
            Max => "max",
            Abs => "abs",
            Log => "log",
            Exp => "exp",
            Sqrt => "sqrt",
        }
    }

    /// How tightly it binds; an operand that binds less is put in parentheses.
    pub(crate) fn binding(self) -> u8 {
        match self {
            Or => 1,
            And => 2,
            Not => 3,
            In | Equal | Unequal | Less | LessOrEqual | Greater | GreaterOrEqual => 4,
            Add | Subtract => 5,
            Multiply | Divide => 6,
            Negate => 7,
            Power => 8,
            If | Min | Max | Abs | Log | Exp | Sqrt => ATOM,
        }
    }

    /// Whether it compares; comparisons do not chain.
    pub(crate) fn compares(self) -> bool {
        self.binding() == In.binding()
    }
}
