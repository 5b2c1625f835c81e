"""The tests. A package, since another one of this name comes with a dependency: `python -m tests.proof` is ours."""
