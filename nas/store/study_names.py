"""Names of studies: validation and selection."""

from search_spaces.support.errors import UserError, unknown_name_error

_MAX_NAME = 100
"""Maximal length of a study's name, which file names contain."""


def check_name(study: str) -> str:
    """Return the name if it is valid for a study, else raise UserError."""
    if study != study.strip() or not study or study == "all" or "," in study or not study.isprintable():
        message = (
            f"a study's name must have no commas, control characters or outer blanks, and not be empty or 'all', got "
            f"{study!r:.80}. Give another --study."
        )
        raise UserError("bad-syntax", message, option="--study", value=study)
    if len(study) > _MAX_NAME:
        message = f"a study's name must have at most {_MAX_NAME} characters, got {len(study)}. Give another --study."
        raise UserError("too-large", message, option="--study", value=study, most=_MAX_NAME)
    return study


def missing_study_error(store_name: object) -> UserError:
    """Return the error for a store without studies, which names other sources of rows."""
    message = (
        f"{store_name} has no study. Run `nas search`, or give another --storage. For shipped tables: "
        f"`nas results --from tables`."
    )
    return UserError("missing-rows", message, option="--storage", storage=str(store_name))


def select_studies(text: str, studies: list[str]) -> list[str]:
    """Return the studies that "all" or "A,B" selects. Raises UserError for an unknown one."""
    names = studies if text == "all" else [name.strip() for name in text.split(",") if name.strip()]
    if "all" in names and text != "all":
        message = f"'all' must be the only study, got --study {text}. Leave the others out."
        raise UserError("conflict", message, option="--study", value=text)
    for name in names or [text]:
        if name not in studies:
            raise unknown_name_error("study", name, studies)
    return names
