"""Where an export goes: what people type as --to."""

import re
from dataclasses import dataclass
from pathlib import Path

from nas.exporters.output import check_new_folder
from search_spaces.support.errors import UserError

TIMM, TRANSFORMERS = "timm:", "transformers:"
FILES = (".pt2", ".onnx", ".safetensors")
"""Suffixes of files."""

_HUB = "hub:"
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Destination:
    """A file of a format, a folder that timm or transformers loads, or a repository of the Hugging Face hub.

    Attributes:
        format: Name of the format: a suffix of FILES, TIMM or TRANSFORMERS; None if the network determines it.
        path: The file or folder; for a repository, the folder that is uploaded.
        repository: The repository, "USER/NAME"; None without an upload.
    """

    format: str | None
    path: Path
    repository: str | None = None

    @classmethod
    def parse(cls, text: str | Path) -> "Destination":
        """Parse FILE.pt2, FILE.onnx, FILE.safetensors, timm:FOLDER, transformers:FOLDER or hub:USER/NAME.

        Raises:
            UserError: Anything else, or the folder of a repository exists and is not empty.
        """
        kind, colon, place = str(text).partition(":")
        prefix = kind + colon
        if prefix in (TIMM, TRANSFORMERS) and place:
            return cls(prefix, Path(place))
        if prefix == _HUB:
            return cls._parse_repository(place)
        if (suffix := Path(text).suffix) in FILES:
            return cls(suffix, Path(text))
        choices = (*FILES, f"{TIMM}FOLDER", f"{TRANSFORMERS}FOLDER", f"{_HUB}USER/NAME")
        message = f"--to must end in {', '.join(FILES)}, or be {', '.join(choices[3:])}; got {str(text)!r}."
        raise UserError("unsupported", message, option="--to", path=str(text), choices=choices)

    @classmethod
    def _parse_repository(cls, name: str) -> "Destination":
        if not _REPOSITORY.fullmatch(name):
            message = f"--to {_HUB} must be followed by USER/NAME of a repository, got {name!r}."
            raise UserError("bad-syntax", message, option="--to", value=name)
        path = Path(Path(name).name)
        check_new_folder(path, f"Remove it, or run `hf upload {name} {path}`.")
        return cls(None, path, name)
