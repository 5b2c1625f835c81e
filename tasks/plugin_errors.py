"""Errors of code that users write: one line with its cause, place and remedy."""

from search_spaces.support.errors import UserError, cause_fields, reason_of


def plugin_error(problem: str, error: BaseException, task: str, lacks_data: bool) -> UserError:
    """Return the error of a task whose code raised one; if the code worked on missing data, ask for them.

    Args:
        problem: Beginning of the message: what failed.
        error: What the code raised.
        task: The task.
        lacks_data: Whether the task takes `--data`, and it is not given.
    """
    message = f"{problem}: {reason_of(error)}"
    if isinstance(error, UserError):
        return UserError(error.kind, message, **{**error.fields, "task": task})
    fields = {**cause_fields(error), "task": task}
    if lacks_data and isinstance(error, TypeError | AttributeError) and "NoneType" in str(error):
        message = f"{message}. If it needs data, give --data PATH."
        return UserError("missing-value", message, option="--data", **fields)
    return UserError("bad-plugin", message, **fields)
