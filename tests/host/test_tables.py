"""Tables for pandas: the types survive CSV and Parquet."""

import builtins
import io
from typing import Any

import pandas as pd
import pytest

from bundle.core.report.tidy import Tidy, tidy
from bundle.errors import HostError
from bundle.host.tables import csv, parquet
from tests import builders_report as b


@pytest.fixture(scope="module")
def table() -> Tidy:
    return tidy(b.mixed(), b.recipe())


def test_csv_reads_back_as_it_was(table: Tidy) -> None:
    data = csv(table)
    assert data.count(b"\n") == len(table.rows) + 1
    assert data.startswith(b"block,position,group,")
    read = pd.read_csv(io.BytesIO(data), dtype_backend="numpy_nullable")
    assert list(read.columns) == [column.name for column in table.columns]
    one = read[read.start == "1/1-ngram"].query("task == 'code' and load == 'c8'").iloc[0]
    assert (one.block, one.energy_per_output_token_j, one.status) == (1, 0.31, "ok")
    assert set(read.cause.dropna()) == {"unsupported-method", "failed-requests"}


def test_parquet_holds_the_same_with_types(table: Tidy) -> None:
    data = parquet(table)
    read = pd.read_parquet(io.BytesIO(data))
    assert len(read) == len(table.rows)
    kinds = {column.name: column.kind for column in table.columns}
    for name, dtype in read.dtypes.items():
        check = {
            "int": pd.api.types.is_integer_dtype,
            "float": pd.api.types.is_float_dtype,
            "text": pd.api.types.is_string_dtype,
        }[kinds[str(name)]]
        assert check(dtype), (name, dtype)
    assert parquet(table) == data


def test_a_table_without_rows_keeps_its_types(table: Tidy) -> None:
    empty = Tidy(columns=table.columns, rows=())
    assert csv(empty).count(b"\n") == 1
    assert pd.read_parquet(io.BytesIO(parquet(empty))).empty


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, table: Tidy) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pyarrow":
            raise ImportError("No module named 'pyarrow'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(HostError, match="needs pyarrow") as caught:
        parquet(table)
    assert "specbundle[parquet]" in caught.value.next_step
