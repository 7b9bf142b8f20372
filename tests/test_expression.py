import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascar.errors import ExpressionError
from ascar.expression import DEPTH_MAX, LENGTH_MAX, RESERVED, literal, parse

VECTORS = json.loads((Path(__file__).parent / "data" / "expression_vectors.json").read_text("utf-8"))

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True).filter(lambda name: name not in RESERVED)
numbers = st.floats(min_value=0, allow_nan=False, allow_infinity=False).map(abs)
texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\x7f", exclude_categories=("Cc",)), max_size=8
)
leaves = st.one_of(numbers.map(literal), texts.map(literal), st.booleans().map(literal), names)


def operations(operands):
    """Texts with every operation in parentheses, so that they leave nothing to precedence."""
    several = st.lists(operands, min_size=1, max_size=3).map(", ".join)
    infix = ["+", "-", "*", "/", "**", "and", "or", "==", "!=", "<", "<=", ">", ">="]
    return st.one_of(
        st.builds("({} {} {})".format, operands, st.sampled_from(infix), operands),
        st.builds("({}{})".format, st.sampled_from(["-", "not "]), operands),
        st.builds("{}({})".format, st.sampled_from(["abs", "log", "exp", "sqrt"]), operands),
        st.builds("{}({})".format, st.sampled_from(["min", "max"]), several),
        st.builds("({} {} ({}))".format, operands, st.sampled_from(["in", "not in"]), several),
        st.builds("if({}, {}, {})".format, operands, operands, operands),
    )


trees = st.recursive(leaves, operations, max_leaves=12)


@pytest.mark.parametrize("vector", VECTORS["evaluate"], ids=lambda vector: vector["formula"])
def test_vectors(vector):
    expression = parse(vector["formula"])
    if "error" in vector:
        with pytest.raises(ExpressionError):
            expression.evaluate_or_none(vector["values"])
        return
    result, expected = expression.evaluate_or_none(vector["values"]), vector["result"]
    assert type(result) is type(expected)
    assert result == (pytest.approx(expected, rel=1e-12) if isinstance(expected, float) else expected)
    assert parse(str(expression)) == expression


@pytest.mark.parametrize("vector", VECTORS["syntax_errors"], ids=lambda vector: vector["formula"])
def test_syntax_errors_name_the_position(vector):
    with pytest.raises(ExpressionError) as caught:
        parse(vector["formula"])
    message = caught.value.message
    assert f"position {vector['position']}: expected" in message
    assert repr(vector["formula"]) in message
    assert "\n" not in message


@given(trees)
@settings(deadline=None)
def test_any_tree_survives_its_text(tree):
    expression = parse(tree)
    assert parse(str(expression)) == expression


@given(trees)
@settings(deadline=None)
def test_parse_is_stable(tree):
    once = parse(tree)
    assert str(parse(str(once))) == str(once)
    assert parse(str(once)) == once
    assert hash(parse(str(once))) == hash(once)


@given(st.text(max_size=60))
@settings(deadline=None)
def test_any_text_parses_or_says_why(text):
    message = "position"
    try:
        expression = parse(text)
    except ExpressionError as error:
        message = error.message
    else:
        assert parse(str(expression)) == expression
    assert "position" in message
    assert "\n" not in message


WORDS = [
    "a",
    "b",
    "1",
    "2.5",
    "'x'",
    "true",
    "and",
    "or",
    "not",
    "in",
    "if",
    "min",
    "(",
    ")",
    ",",
    "+",
    "-",
    "*",
    "/",
]
WORDS += ["**", "==", "<", ">=", "=", "!", "1e400", "''", '"', "log", "x" * 100]


@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
@settings(deadline=None)
def test_any_words_parse_or_say_why(text):
    try:
        expression = parse(text)
    except ExpressionError:
        return
    assert parse(str(expression)) == expression


values = st.dictionaries(
    st.sampled_from("ab"),
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    max_size=2,
)


@given(trees, values)
@settings(deadline=None)
def test_evaluation_gives_a_plain_value_or_an_expression_error(tree, known):
    expression = parse(tree)
    every = dict.fromkeys(expression.names, None) | known
    message = ""
    try:
        result = expression.evaluate_or_none(every)
    except ExpressionError as error:
        message = error.message
    else:
        assert result is None or isinstance(result, (bool, str)) or math.isfinite(result)
    assert "\n" not in message


def test_names_stand_once_in_order_of_mention():
    assert parse("b + a * b <= if(c, a, d)").names == ("b", "a", "c", "d")


def test_equality_tells_kinds_apart():
    assert parse("a == 1") != parse("a == true")
    assert parse("1") == parse("1.0")
    assert parse("a+b") == parse(" a + b ")
    assert len({parse("a + b"), parse("a+b"), parse("b+a")}) == 2


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "-" * 4000 + "1",
        "not " * 900 + "a",
        "2**" * 1000 + "1",
        "+".join(["a"] * 100),
        "min(" * 900,
    ],
)
def test_deep_formulas_are_refused(text):
    with pytest.raises(ExpressionError, match=f"at most {DEPTH_MAX} levels|at most {LENGTH_MAX}"):
        parse(text)


@pytest.mark.parametrize(
    "wrap", ["({})", "-{}", "abs({})", "1 + ({})", "not ({})", "if(true, {}, 1)", "2 ** ({})"]
)
def test_what_parses_at_the_limit_survives_its_text(wrap):
    text, deepest = "a", parse("a")
    while True:
        text = wrap.format(text)
        try:
            deepest = parse(text)
        except ExpressionError:
            break
    assert parse(str(deepest)) == deepest


def test_long_formulas_are_refused():
    with pytest.raises(ExpressionError, match="at most 4096"):
        parse("a" * (LENGTH_MAX + 1))
    dense = "1 in (" + ",".join(["1"] * 1800) + ")"
    assert len(dense) <= LENGTH_MAX
    with pytest.raises(ExpressionError, match="when spaced"):
        parse(dense)


def test_not_a_string():
    with pytest.raises(ExpressionError, match="write it as a string"):
        parse(3)


def test_evaluate_refuses_na_number_and_truth_check_kinds():
    with pytest.raises(ExpressionError, match="n/a: x not active"):
        parse("x + 1").evaluate({"x": None})
    with pytest.raises(ExpressionError, match="not a number"):
        parse("x < 1").number({"x": 0})
    with pytest.raises(ExpressionError, match="not true or false"):
        parse("x + 1").holds({"x": 0})
    assert parse("x + 1").number({"x": 1}) == 2
    assert parse("x < 1").holds({"x": None}) is None
    assert parse("x < 1").holds({"x": 0}) is True


def test_unknown_names_are_told_with_the_known_ones():
    with pytest.raises(ExpressionError, match=r"unknown name 'a'; known here: b, c"):
        parse("a + b").evaluate({"c": 1, "b": 2})


@given(
    st.one_of(
        st.booleans(), texts, st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**53), 2**53)
    )
)
def test_a_literal_evaluates_to_itself(value):
    result = parse(literal(value)).evaluate({})
    assert result == value
    assert isinstance(result, bool) == isinstance(value, bool)


def test_the_terms_of_a_comparison_are_told_with_their_signs():
    found = parse("a + 2 * b - 3 >= -(c - d)").terms()
    assert found is not None
    sign, terms = found
    assert (sign, [(factor, str(term)) for factor, term in terms]) == (
        ">=",
        [(1.0, "a"), (1.0, "2 * b"), (-1.0, "3"), (1.0, "c"), (-1.0, "d")],
    )
    for text in ("a and b", "not a", "a in (1, 2)", "min(a, b)"):
        assert parse(text).terms() is None
