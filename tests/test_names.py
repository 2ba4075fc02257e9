"""The names of tests are short enough to be read at a glance."""

import re

LONGEST = 60  # characters of a test's name, with `test_`


def test_names_of_tests_are_short(project):
    long = [
        f"{file.relative_to(project)}: {name} has {len(name)} characters, and at most {LONGEST} are allowed: "
        "name the behaviour, without its reason"
        for file in sorted((project / "tests").rglob("test_*.py"))
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
        if len(name) > LONGEST
    ]
    assert not long, "\n".join(long)
