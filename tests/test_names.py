"""The names of tests are short enough to be read at a glance, and those of classes and functions say one thing."""

import ast
import re
from collections import Counter

LONGEST = 60  # characters of a test's name, with `test_`
OURS = ("src", "spark_jobs", "expectations", "dags", "plugins")
SAME_BY_DESIGN = {"Parameters"}  # a scenario or fault has one, and it is used as an attribute of its module
VERBS = {"embed", "exceed", "feed", "need", "proceed", "read", "seed", "shed", "succeed"}


def test_names_of_tests_are_short(project):
    long = [
        f"{file.relative_to(project)}: {name} has {len(name)} characters, and at most {LONGEST} are allowed: "
        "name the behaviour, without its reason"
        for file in sorted((project / "tests").rglob("test_*.py"))
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
        if len(name) > LONGEST
    ]
    assert not long, "\n".join(long)


def test_no_two_public_classes_have_one_name(project):
    names = Counter(
        node.name for node in nodes_of(project) if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in names.items() if times > 1} == SAME_BY_DESIGN


def test_no_name_of_a_function_is_a_bare_participle(project):
    names = {node.name.strip("_") for node in nodes_of(project) if isinstance(node, ast.FunctionDef)}
    properties = {
        node.name.strip("_")
        for node in nodes_of(project)
        if isinstance(node, ast.FunctionDef)
        if any(getattr(of, "id", "") in ("property", "cached_property") for of in node.decorator_list)
    }
    assert {name for name in names - properties if re.fullmatch("[a-z]+ed", name)} <= VERBS


def nodes_of(project):
    """All parts of the sources of the product."""
    files = (file for folder in OURS for file in sorted((project / folder).rglob("*.py")))
    return [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
