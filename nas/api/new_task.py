"""`nas.new_task`: write a task to start from."""

from pathlib import Path

from nas.scaffold.new_file import NewFile, class_name_of, shell_quote, write_template


def new_task(name: str, *, output: str | Path | None = None) -> NewFile:
    """Write a commented task called NAME to start from, as one runnable file. No file is overwritten.

    Raises:
        UserError: A name that is taken or invalid, or a file that exists or cannot be written.
    """
    file = write_template("task", name, output)
    reference = f"{shell_quote(file)}:{class_name_of(name)}"
    return NewFile(
        file,
        (
            (f"python {shell_quote(file)}", "checks the contract of tasks"),
            (f"nas evaluate {reference} --preset smoke", "trains one network, in seconds"),
            (f"nas search {reference} --trials 8", "searches architectures"),
        ),
    )
