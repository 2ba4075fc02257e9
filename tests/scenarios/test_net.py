"""The topologies that releases are compared by."""

from onceproof.model.release import Release
from onceproof.scenarios.declared import DeclaredApplication
from onceproof.scenarios.net import OPTIMIZATION, OPTIMIZED, case_of, example_cases, programs, scenario_cases
from tests.published import NEWEST


def test_each_program_is_there_once_and_once_optimized():
    names = [case.name for case in programs()]
    assert len(names) == len(set(names)) > 500
    assert sum(case.config.get(OPTIMIZATION) == "all" for case in programs()) == len(names) / 2
    assert {name.removesuffix(OPTIMIZED) for name in names} <= set(names)


def test_each_operand_of_a_program_is_made_before():
    for case in programs():
        made = {"left", "right", "third", "people", "places"}
        for line in case.app["program"].splitlines():
            words = line.split()
            if words[0] == "to":
                assert words[1] in made, case.name
            else:
                of_topic = words[2] in ("stream", "table", "globalTable")
                assert of_topic or words[3] in made, (case.name, line)
                made.add(words[0])


def test_topologies_of_scenarios_name_topics_without_releases():
    cases = scenario_cases(NEWEST)
    assert len({case.name for case in cases}) == len(cases) > 20
    assert all(str(NEWEST) not in str(case.app) for case in cases)
    older = {case.name for case in scenario_cases(Release(3, 0, 0))}
    assert "as-of-join DEFAULT_CONFIG" in {case.name for case in cases} - older  # which has no versioned stores
    assert all(case.records for case in cases)


def test_an_application_is_compared_with_its_own_settings(project):
    case = case_of(DeclaredApplication.read(project / "examples" / "orders"))
    assert case.config["orders.join.minutes"] == "60"
    assert {topic for topic, *_ in case.records} == {"orders", "payments"}
    names = [one.name for one in example_cases(project / "examples")]
    assert "example orders (optimized)" in names
    assert not any("shop" in name for name in names)  # it runs a command
