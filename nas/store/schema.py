"""The project's tables in a store's database, and its attributes of Optuna's studies there."""

import sqlalchemy as sql

_TABLES = sql.MetaData()

ROWS = sql.Table(
    "nas_rows",
    _TABLES,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("study", sql.String(255), index=True, nullable=False),
    sql.Column("number", sql.Integer),  # of the trial, in a search
    sql.Column("identity", sql.String(16), index=True, nullable=False),
    sql.Column("status", sql.String(16), nullable=False),
    sql.Column("row", sql.Text, nullable=False),
    sql.Index("nas_rows_once", "study", "number", unique=True),
)
"""A Row as a line of JSON, and the columns by which it is selected."""

LEASES = sql.Table(
    "nas_leases",
    _TABLES,
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("holder", sql.Text, index=True, nullable=False),
    sql.Column("until", sql.DateTime(timezone=True), nullable=False),
)
"""Leases of trials and evaluations: see `nas.store.leases`."""

CONFIG = "config"
"""Study attribute: the SearchConfig's record."""

FIRST_REEVALUATION = "first_reevaluation"
"""Study attribute: the number of the first trial that re-evaluates."""


def create(engine: sql.Engine, table: sql.Table) -> None:
    """Create a table with its indexes, unless it exists."""
    _TABLES.create_all(engine, tables=[table])
