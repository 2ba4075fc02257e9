"""The tables of Spark, read without Spark."""

import pyarrow
import pyarrow.parquet
import pytest

from onceproof.model.errors import HarnessError
from onceproof.results.spark_tables import rows_of


def test_a_table_that_is_not_there_has_no_rows(tmp_path):
    assert rows_of(tmp_path / "findings", ["trial"]) is None


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"not parquet at all"])
def test_a_damaged_table_is_an_error_with_a_sentence(tmp_path, damage):
    pyarrow.parquet.write_table(pyarrow.table({"trial": ["t1"]}), tmp_path / "whole.parquet")
    (tmp_path / "torn.parquet").write_bytes(damage)
    with pytest.raises(HarnessError, match=r"The table .* is damaged: .*\. Delete it, and let Spark check again\."):
        rows_of(tmp_path, ["trial"])
