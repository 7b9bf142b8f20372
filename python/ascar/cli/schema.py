"""`ascar schema`: the JSON Schema of what a command prints with --json."""

from __future__ import annotations

from typing import Annotated

import typer

from ascar.cli.epilog import examples

EXAMPLES = examples(
    "ascar schema tune > tune.json",
    "ascar schema error                 what a failing command prints",
)


def _documents(incomplete: str) -> list[str]:
    from ascar.results.documents import DOCUMENTS

    return [name for name in sorted(DOCUMENTS) if name.startswith(incomplete)]


def schema(
    document: Annotated[
        str,
        typer.Argument(
            metavar="DOCUMENT",
            help='The document\'s name: `tune` where its key `schema` is "ascar/tune/1".',
            autocompletion=_documents,
        ),
    ],
) -> int:
    """Print the JSON Schema of a document that a command prints with --json, as this version prints it."""
    import json
    import sys

    from ascar.errors import InputError
    from ascar.results.documents import DOCUMENTS, struct_of
    from ascar.results.schema import schema_of

    if document not in DOCUMENTS:
        allowed = ", ".join(_documents(""))
        raise InputError(f"DOCUMENT: {document!r} is not the name of a document; allowed: {allowed}")
    sys.stdout.write(json.dumps(schema_of(struct_of(document)), indent=2, ensure_ascii=False) + "\n")
    return 0
