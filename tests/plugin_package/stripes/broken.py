"""A plug-in whose requirements are not installed."""

import a_package_that_nobody_has  # noqa: F401
