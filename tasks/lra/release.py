"""Locations of data files: in their own folder, or in the release of the Long Range Arena."""

from dataclasses import dataclass
from pathlib import Path

from search_spaces.support.errors import UserError

RELEASE = "https://storage.googleapis.com/long-range-arena/lra_release.gz"
_WITHIN = ("", "lra_release", "lra_release/lra_release")
"""Folders inside --data to search; the release unpacks into lra_release/lra_release."""


@dataclass(frozen=True, slots=True)
class ReleaseFiles:
    """Files of one task.

    Attributes:
        task: The task's name.
        folder: Their folder in the release.
        files: Names of files or folders in it.
        source: Where to download them.
    """

    task: str
    folder: str
    files: tuple[str, ...]
    source: str = RELEASE

    def find(self, data: Path | None) -> Path:
        """Return the folder that holds the files: `data`, or a folder inside it as in the release.

        Raises:
            UserError: No data was given, none of the files is there, or one of them is missing.
        """
        layout = f"{self.folder}/ with {', '.join(self.files)}"
        if data is None:
            raise UserError(
                "missing-data",
                f"task {self.task!r} needs {layout}. Download it from {self.source}, and give --data FOLDER.",
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
                    f"{missing[0]} is missing from {str(place)!r}, the folder {layout}. Unpack the release again.",
                    path=str(place),
                    value=missing[0],
                    choices=self.files,
                )
        raise UserError(
            "missing-data",
            f"--data of task {self.task!r} must be the folder {layout}, or its parent, got {str(data)!r}. "
            f"Download it from {self.source}.",
            option="--data",
            path=str(data),
            task=self.task,
            source=self.source,
            choices=self.files,
        )
