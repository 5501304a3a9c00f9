"""A tidy table as files for pandas and its like: CSV and Parquet."""

from __future__ import annotations

import io

import pandas as pd

from bundle.core.report.tidy import Tidy
from bundle.errors import HostError

# Nullable types: a missing whole number stays a whole number's column.
_TYPES = {"int": "Int64", "float": "float64", "text": "string"}


def frame(table: Tidy) -> pd.DataFrame:
    """The table with a type for every column, whatever the rows hold."""
    names = [column.name for column in table.columns]
    made = pd.DataFrame(list(table.rows), columns=names, dtype="object")
    return made.astype({column.name: _TYPES[column.kind] for column in table.columns})


def csv(table: Tidy) -> bytes:
    """CSV in UTF-8 with a header line; a missing value is empty."""
    return frame(table).to_csv(index=False, lineterminator="\n").encode()


def parquet(table: Tidy) -> bytes:
    """Parquet with the same columns.

    Raises:
        HostError: pyarrow, which writes it, is not installed.
    """
    try:
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401 - pandas finds it by itself; only the message is ours
    except ImportError as error:
        raise HostError(
            "Parquet needs pyarrow, which is not installed",
            next_step="install the extra: python -m pip install 'specbundle[parquet]'; "
            "CSV holds the same table",
        ) from error
    out = io.BytesIO()
    frame(table).to_parquet(out, engine="pyarrow", index=False)
    return out.getvalue()
