"""The names of the benchmarks, with what each measures."""

import ast
from pathlib import Path


def benchmarks() -> dict[str, str]:
    """Return script name -> first line of its docstring, for each script here that ends with its own `main`."""
    descriptions = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        if f'\n    main("{path.stem}", ' in source:
            descriptions[path.stem] = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    return descriptions
