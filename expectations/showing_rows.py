"""GX's own expectations, whose failures show the offending rows with their columns.

GX itself lists bare values in Data Docs, and a pair of values as one number. Here each row says partition, key and
offset, so that people can find the record. The classes must be imported before Data Docs are built.
"""

import html
from typing import Any

from great_expectations import expectations as gxe
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.render import LegacyDiagnosticRendererType, RenderedTableContent
from great_expectations.render.renderer.renderer import renderer

# Where a row is, then what it says; GX sorts by name.
ORDER = (
    "store",
    "partition",
    "first_offset",
    "changelog_offset",
    "place",
    "key",
    "id",
    "expected_id",
    "inputs",
    "outputs",
    "expected",
    "observed",
)


def _rank(column: str) -> tuple[int, str]:
    return (ORDER.index(column) if column in ORDER else len(ORDER), column)


def _show(value: Any) -> str:
    """GX puts a table's texts into its pages as they are, and a text may come from a log."""
    return "—" if value is None else html.escape(str(value))


class _ShowingRows(Expectation):
    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.UNEXPECTED_TABLE)
    def _diagnostic_unexpected_table_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,  # noqa: ARG003 - GX's signature
        result: Any = None,
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG003
    ) -> list[RenderedTableContent] | None:
        rows = (result.result or {}).get("partial_unexpected_index_list") if result else None
        if not rows:
            return None
        columns = sorted(rows[0].keys() - {"anomaly"}, key=_rank)  # the expectation names it
        return [
            RenderedTableContent(
                content_block_type="table",
                header_row=columns,
                table=[[_show(row[name]) for name in columns] for row in rows],
                styling={"body": {"classes": ["table", "table-bordered", "table-sm", "mt-3"]}},
            )
        ]


class ExpectUniqueValues(_ShowingRows, gxe.ExpectColumnValuesToBeUnique):
    """`ExpectColumnValuesToBeUnique`, showing the rows that share a value."""


class ExpectEqualPairs(_ShowingRows, gxe.ExpectColumnPairValuesToBeEqual):
    """`ExpectColumnPairValuesToBeEqual`, showing the rows that differ."""


class ExpectGreaterPairs(_ShowingRows, gxe.ExpectColumnPairValuesAToBeGreaterThanB):
    """`ExpectColumnPairValuesAToBeGreaterThanB`, showing the rows in which A is not greater."""


class ExpectNoAnomaly(_ShowingRows, gxe.ExpectColumnValuesToNotBeInSet):
    """`ExpectColumnValuesToNotBeInSet`, showing the places where the observed value differs from the expected one."""
