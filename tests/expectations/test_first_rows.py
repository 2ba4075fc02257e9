"""Which failing rows GX's pandas engine looks up: those that are shown, while they are all counted."""

import great_expectations as gx
import pandas as pd
import pytest

from expectations import first_rows
from expectations.showing_rows import ExpectEqualPairs, ExpectGreaterPairs, ExpectNoAnomaly, ExpectUniqueValues

ROWS = pd.DataFrame({"key": range(100), "seen": [n % 10 for n in range(100)], "due": [n % 7 for n in range(100)]})


@pytest.fixture(scope="module")
def batch():
    first_rows.register()
    asset = gx.get_context(mode="ephemeral").data_sources.add_pandas("rows").add_dataframe_asset("rows")
    return asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": ROWS})


@pytest.mark.parametrize(
    ("expectation", "offending"),
    [
        (ExpectUniqueValues(column="seen"), ROWS),
        (ExpectNoAnomaly(column="seen", value_set=[3]), ROWS[ROWS.seen == 3]),
        (ExpectEqualPairs(column_A="seen", column_B="due"), ROWS[ROWS.seen != ROWS.due]),
        (ExpectGreaterPairs(column_A="seen", column_B="due"), ROWS[ROWS.seen <= ROWS.due]),
    ],
)
@pytest.mark.parametrize("shown", [5, 200])
def test_the_first_rows_are_shown_and_all_are_counted(batch, expectation, offending, shown):
    wanted = {
        "result_format": "SUMMARY",
        "partial_unexpected_count": shown,
        "unexpected_index_column_names": ["key"],
    }
    result = batch.validate(expectation, result_format=wanted).result
    assert result["unexpected_count"] == len(offending)
    assert [row["key"] for row in result["partial_unexpected_index_list"]] == list(offending.key[:shown])


def test_the_metrics_of_all_our_expectations_are_among_them():
    ours = (ExpectUniqueValues, ExpectEqualPairs, ExpectGreaterPairs, ExpectNoAnomaly)
    assert sorted(f"{one.map_metric}.unexpected_index_list" for one in ours) == sorted(first_rows.METRICS)
