"""Where the files of a data set lie: in its own folder, or in the release of the Long Range Arena."""

from dataclasses import dataclass
from pathlib import Path

from search_spaces.support.errors import UserError

RELEASE = "https://storage.googleapis.com/long-range-arena/lra_release.gz"
_WITHIN = ("", "lra_release", "lra_release/lra_release")
"""The release unpacks into a folder of its name in a folder of its name."""


@dataclass(frozen=True, slots=True)
class ReleaseFiles:
    """Files that belong together.

    Attributes:
        task: Whose they are.
        folder: The folder that the release keeps them in.
        files: Their names there; some may be folders.
        source: Where they are to be had.
    """

    task: str
    folder: str
    files: tuple[str, ...]
    source: str = RELEASE

    def find(self, data: Path | None) -> Path:
        """The folder that holds the files: `data`, or the one in it that the release has.

        Raises:
            UserError: No data was given, none of the files is there, or one of them is missing.
        """
        layout = f"{self.folder}/ with {', '.join(self.files)}"
        if data is None:
            raise UserError(
                "missing-data",
                f"task {self.task!r} reads {layout}. Give it with --data FOLDER; {self.source} has it.",
                option="--data",
                task=self.task,
                source=self.source,
                choices=self.files,
            )
        parts = self.folder.split("/")
        tails = ["/".join(parts[first:]) for first in range(len(parts))]
        places = [data, *(data / within / tail for within in _WITHIN for tail in tails)]
        for place in places:
            missing = [name for name in self.files if not (place / name).exists()]
            if not missing:
                return place
            if len(missing) < len(self.files):
                raise UserError(
                    "missing-data",
                    f"{missing[0]} is missing from {str(place)!r}, the folder {layout}. Unpack it again.",
                    path=str(place),
                    value=missing[0],
                    choices=self.files,
                )
        raise UserError(
            "missing-data",
            f"--data of task {self.task!r} must be the folder {layout}, or one that holds it, got {str(data)!r}. "
            f"{self.source} has it.",
            option="--data",
            path=str(data),
            task=self.task,
            source=self.source,
            choices=self.files,
        )
