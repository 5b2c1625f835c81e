"""`nas.new_topology`: write a topology to start from."""

from pathlib import Path

from nas.scaffold.new_file import NewFile, shell_quote, write_template


def new_topology(name: str, *, output: str | Path | None = None) -> NewFile:
    """Write a commented topology called NAME to start from, as one runnable file. No file is overwritten.

    Raises:
        UserError: A name that is taken or invalid, or a file that exists or cannot be written.
    """
    file = write_template("topology", name, output)
    folder = shell_quote(file.parent)
    return NewFile(
        file,
        (
            (f"python {shell_quote(file)}", "checks the contract of topologies"),
            (f"python -m pip install --editable {folder}", "registers its name; its docstring has the pyproject.toml"),
            (f"nas evaluate digits-vit --topology {name} --preset smoke", "trains a network with it"),
        ),
    )
