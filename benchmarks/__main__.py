"""Lists the benchmarks: each is one command, and says of itself what it shows."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
SHARED = {"__main__", "harness"}


def main() -> None:
    """Print a line for each."""
    for path in sorted(HERE.glob("*.py")):
        text = path.read_text()
        document = ast.get_docstring(ast.parse(text))
        if path.stem in SHARED or 'if __name__ == "__main__"' not in text or not document:
            continue
        print(f"python -m benchmarks.{path.stem}\n    {document.splitlines()[0]}")


if __name__ == "__main__":
    main()
