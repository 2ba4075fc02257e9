"""The import contracts catch what they must, and nothing else."""

from configparser import ConfigParser

import pytest
from grimp import ImportGraph, build_graph
from importlinter import configuration
from importlinter.contracts.forbidden import ForbiddenContract

from tests.contracts import OnlyContract


@pytest.mark.parametrize(
    ("imported", "third_party", "kept"),
    [
        ("json", False, True),
        ("ours.model.cell", False, True),
        ("ours.lab", False, False),
        ("ours.lab", True, False),
        ("ours.modelling", True, False),  # a name with the same beginning
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


@pytest.mark.parametrize(
    ("importer", "kept"),
    [
        (None, True),
        ("onceproof.lab.maven", False),
        ("onceproof.harness", False),
        ("onceproof.campaigns.search.explorer", False),
        ("onceproof.campaigns.search.verbs", True),
        ("onceproof.results.redaction", True),
        ("onceproof.results.judging", False),
        ("onceproof.cli.results", True),
    ],
)
def test_settings_are_given_to_what_works_with_them(project, importer, kept):
    config = ConfigParser()
    config.read(project / ".importlinter")
    given = config["importlinter:contract:given"]
    lists = ("source_modules", "forbidden_modules")
    options = {name: given[name].split() for name in lists} | {"allow_indirect_imports": "True"}
    options["ignore_imports"] = [line for line in given["ignore_imports"].split("\n") if "->" in line]
    configuration.configure()
    graph = build_graph("onceproof")
    if importer:
        graph.add_import(importer=importer, imported="onceproof.settings")
    session = {"root_packages": ["onceproof"]}
    contract = ForbiddenContract(given["name"], session_options=session, contract_options=options)
    assert contract.check(graph, verbose=False).kept == kept


def test_every_package_of_ours_is_looked_at(project):
    config = ConfigParser()
    config.read(project / ".importlinter")
    there = {file.parent.name for file in project.glob("*/*.py")} - {"docs"} | {"onceproof"}
    assert {*config["importlinter"]["root_packages"].split()} == there
