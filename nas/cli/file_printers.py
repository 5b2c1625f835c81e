"""What a door wrote into files or a store, on the terminal."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nas.engine.row_import import Imported
    from nas.exporters.export import ExportReport
    from nas.scaffold.new_file import NewFile
    from tasks.diffusion.encoding import LatentSummary


def imported(found: "Imported") -> None:
    """Print what was taken in."""
    from nas.report import tables

    known = f"; {found.known} it had" if found.known else ""
    tables.say(
        tables.screen(), f"{found.new} {'row is' if found.new == 1 else 'rows are'} new in study {found.study}{known}"
    )


def encoded(written: "LatentSummary") -> None:
    """Print what was written, and what it is for."""
    from nas.report import tables

    console, shape = tables.screen(), " x ".join(map(str, written.shape))
    tables.say(console, f"latents of {written.pictures} pictures of {written.classes} classes, {shape}. Next:")
    tables.say(console, f"    nas evaluate imagenet-dit --data {written.folder}")


def export(written: "ExportReport") -> None:
    """Print where a network was written, and how near it came."""
    from nas.report import tables

    tables.say(tables.screen(), str(written))


def new_file(written: "NewFile") -> None:
    """Print where a file to start from was written, and what to run next."""
    from nas.report import tables

    console, widest = tables.screen(), max(len(command) for command, _ in written.commands)
    tables.say(console, f"{written.file} written, complete as it is. Next:")
    for command, why in written.commands:
        tables.say(console, f"    {command:{widest}}  # {why}")
