"""Only the offending rows that Data Docs show are looked up.

GX looks up the columns of every offending row, value by value (36,000 rows of a red trial: 10 s), and keeps the first
few. Counts and percentages come from other metrics, which see all rows.
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from great_expectations.execution_engine import PandasExecutionEngine
from great_expectations.expectations.registry import get_metric_provider, register_metric

METRICS = (
    "column_values.not_in_set.unexpected_index_list",
    "column_values.unique.unexpected_index_list",
    "column_pair_values.a_greater_than_b.unexpected_index_list",
    "column_pair_values.equal.unexpected_index_list",
)


@cache
def register() -> None:
    """Let GX's pandas engine look up the first `partial_unexpected_count` rows, in these metrics."""
    # It warns about each metric that is registered twice.
    logging.getLogger(register_metric.__module__).setLevel(logging.ERROR)
    for name in METRICS:
        metric, look_up = get_metric_provider(name, PandasExecutionEngine())
        register_metric(
            metric_name=name,
            metric_domain_keys=metric.condition_domain_keys,
            metric_value_keys=(*metric.condition_value_keys, "result_format"),
            execution_engine=PandasExecutionEngine,
            metric_class=metric,
            metric_provider=of_first_rows(look_up),
            metric_fn_type=look_up.metric_fn_type,
        )


def of_first_rows(look_up: Callable[..., Any]) -> Callable[..., Any]:
    """The metric of GX; it gets no more rows than it keeps."""

    def look_up_first(*, metrics: dict[str, Any], metric_value_kwargs: dict[str, Any], **rest: Any) -> Any:
        offends, *domain = metrics["unexpected_condition"]
        first = offends & (offends.cumsum() <= metric_value_kwargs["result_format"]["partial_unexpected_count"])
        shown = metrics | {"unexpected_condition": (first, *domain)}
        return look_up(metrics=shown, metric_value_kwargs=metric_value_kwargs, **rest)

    return look_up_first
