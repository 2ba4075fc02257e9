"""The import contract of our own sees what it must, and nothing else."""

import pytest
from grimp import ImportGraph

from tests.contracts import OnlyContract


@pytest.mark.parametrize(
    ("imported", "third_party", "kept"),
    [
        ("json", False, True),
        ("ours.model.cell", False, True),
        ("ours.lab", False, False),
        ("ours.lab", True, False),
        ("ours.modelling", True, False),  # a name that begins alike
        ("rich", False, False),
        ("rich", True, True),
    ],
)
def test_what_a_package_may_import(imported, third_party, kept):
    graph = ImportGraph()
    for module in (
        "ours",
        "ours.jobs",
        "ours.jobs.check",
        "ours.model",
        "ours.model.cell",
        "ours.lab",
        "ours.modelling",
    ):
        graph.add_module(module)
    for module in ("json", "rich"):
        graph.add_module(module, is_squashed=True)
    graph.add_import(importer="ours.jobs.check", imported=imported)
    graph.add_import(importer="ours.lab", imported="rich")  # which is nobody's business here
    options = {"packages": ["ours.jobs"], "allowed": ["ours.model"], "third_party": str(third_party)}
    contract = OnlyContract("a name", session_options={}, contract_options=options)
    assert contract.check(graph, verbose=False).kept == kept
