"""Names of studies: which they can have, and which of them somebody means."""

from search_spaces.errors import UserError, unknown

_MOST_NAME = 100
"""Characters of a study's name, which files are named after."""


def check_name(study: str) -> str:
    """The name, where a study can have it. Raises UserError."""
    if study != study.strip() or not study or study == "all" or "," in study or not study.isprintable():
        raise UserError(
            f"a study's name has no commas, line ends or other controls, no blanks at its ends, and is not 'all', got "
            f"{study!r:.80}. Give another --study."
        )
    if len(study) > _MOST_NAME:
        raise UserError(f"a study's name has at most {_MOST_NAME} characters, got {len(study)}. Give another --study.")
    return study


def no_study(place: object) -> UserError:
    """That nothing is stored there, and where else there are rows."""
    return UserError(
        f"there is no study in {place}. Make one with `nas search`, or give --storage; `nas results --from tables` "
        f"asks what ships."
    )


def named(wanted: str, known: list[str]) -> list[str]:
    """The studies that "all" or "A,B" means. Raises UserError for one that is not there."""
    names = known if wanted == "all" else [name.strip() for name in wanted.split(",") if name.strip()]
    if "all" in names and wanted != "all":
        raise UserError(f"'all' stands alone, got --study {wanted}. Leave the others out.")
    for name in names or [wanted]:
        if name not in known:
            raise unknown("study", name, known)
    return names
