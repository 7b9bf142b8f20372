"""The stub says what the extension has: names, signatures and defaults."""

import ast
import inspect
from pathlib import Path

import ascar
from ascar import _core

STUB = ast.parse((Path(ascar.__file__).parent / "_core.pyi").read_text())


def test_every_public_name_is_in_the_stub() -> None:
    declared = {node.name for node in STUB.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    constants = {
        node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign) and node.value is None
    }
    present = {name for name in dir(_core) if not name.startswith("_") or name == "__version__"}
    assert declared | constants == present


def test_every_function_has_the_parameters_of_its_stub() -> None:
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            signature = inspect.signature(getattr(_core, node.name))
            declared = [argument.arg for argument in node.args.args + node.args.kwonlyargs]
            assert list(signature.parameters) == declared, node.name
            keyword_only = {argument.arg for argument in node.args.kwonlyargs}
            kinds = signature.parameters.items()
            assert {name for name, item in kinds if item.kind is item.KEYWORD_ONLY} == keyword_only, node.name
            pairs = [
                (argument.arg, default)
                for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            ]
            pairs += list(
                zip([item.arg for item in node.args.args][::-1], node.args.defaults[::-1], strict=False)
            )
            for name, default in pairs:
                expected = inspect.Parameter.empty if default is None else ast.literal_eval(default)
                assert signature.parameters[name].default == expected, (node.name, name)


def test_every_attribute_of_a_class_is_in_the_stub() -> None:
    for node in STUB.body:
        if isinstance(node, ast.ClassDef):
            declared = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            present = {name for name in vars(getattr(_core, node.name)) if not name.startswith("_")}
            assert {name for name in declared if not name.startswith("_")} == present, node.name
