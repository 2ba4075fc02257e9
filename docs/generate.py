"""Write the pages of the documentation that follow from the code: `python docs/generate.py`, or `make reference`.

`tests/test_docs.py` compares each page with what is made here, so none of them is written by hand.
"""

import inspect
import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mdformat
from typer.main import get_command

from onceproof.campaigns.fuzz.known import CAUSES
from onceproof.cli import app
from onceproof.cli.groups import FIRST, GROUPS, OLD_NAMES, OLD_UNTIL
from onceproof.faults import FAULTS
from onceproof.model.application_issues import application_issues
from onceproof.model.elsewhere import failures
from onceproof.model.explaining import Explanation
from onceproof.model.known_issues import LATER, OF_BROKERS, Avoidance, KnownIssue, registry, url_of
from onceproof.model.parameter import Parameter
from onceproof.model.plants import plants
from onceproof.model.promise import ANOMALIES, LOSSES, PROMISES, RULES
from onceproof.model.release import Release
from onceproof.scenarios import SCENARIOS
from onceproof.settings import Settings

ROOT = Path(__file__).parents[1]
WIDTH = 100
GENERATED = "<!-- Written by `make reference` from the code. Do not edit. -->"
FAULT = "fault"  # the parameter of scenarios that names the fault
EXIT = re.compile(r"^Exit: ", re.MULTILINE)


def literal(text: str) -> str:
    """Text as Markdown that shows the same; what stands between backticks is code there, too."""
    parts = text.split("`")
    return "`".join(re.sub(r"([*<\[\]])", r"\\\1", part) if at % 2 == 0 else part for at, part in enumerate(parts))


def code(text: object) -> str:
    """Text as code."""
    return f"`{text}`"


def codes(names: Iterable[object]) -> str:
    """Several texts as code."""
    return ", ".join(map(code, names))


def anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def paragraph(text: str, first: str = "", then: str = "") -> str:
    """Text in lines of at most `WIDTH` characters, as far as its words allow."""
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def bullets(texts: Iterable[str], indent: str = "") -> str:
    """A list."""
    return "\n".join(paragraph(text, f"{indent}- ", f"{indent}  ") for text in texts)


def page(title: str, introduction: str, parts: Iterable[str]) -> str:
    """A whole page, in the form of all pages."""
    text = "\n\n".join([f"# {title}", GENERATED, paragraph(introduction), *filter(None, parts)]) + "\n"
    return mdformat.text(text, options=tomllib.loads((ROOT / ".mdformat.toml").read_text()), extensions={"gfm"})


def cli() -> str:
    """Every command with its arguments, options and exit codes."""
    command = get_command(app)
    introduction = (
        "Every command of `onceproof`, as `onceproof COMMAND --help` shows it. A command that names no exit codes "
        "ends with 0, with 2 if it cannot do what is asked, or with 4 if Onceproof fails. Each ends with 130 if it is "
        "interrupted, and with 141 if its output is not read to the end."
    )
    first, groups = ([command.commands[name] for name in names] for names in (FIRST, GROUPS))
    listed = (f"| [{one.name}](#{anchor(one.name)}) | {codes(one.commands)} |" for one in groups)
    parts = ["## Options before a command", bullets(map(_option, command.params))]
    parts += ["## Main commands", *(part for one in first for part in _command(one, "onceproof"))]
    parts += ["## Groups", "\n".join(["| group | commands |", "| -- | -- |", *listed])]
    for group in groups:
        parts += [f"## {group.name}", paragraph(literal(group.help)), *_command(group, "onceproof")]
    rows = (f"| {code(f'onceproof {old}')} | {code(f'onceproof {new}')} |" for old, new in OLD_NAMES.items())
    parts += [
        "## Old names",
        paragraph(
            f"These names work until {OLD_UNTIL}. Each does what the new one does, and prints the new one on the error "
            "stream."
        ),
        "\n".join(["| old name | new name |", "| -- | -- |", *rows]),
    ]
    return page("Commands", introduction, parts)


def _command(command: Any, above: str) -> Iterator[str]:
    """A command, and those that it groups."""
    name = f"{above} {command.name}"
    if hasattr(command, "commands"):
        for subcommand in command.commands.values():
            yield from _command(subcommand, name)
        return
    parameters = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [parameter for parameter in parameters if parameter.param_type_name == "argument"]
    options = [parameter for parameter in parameters if parameter.param_type_name == "option"]
    usage = [name, *(["[OPTIONS]"] if options else []), *map(_usage, arguments)]
    text, exits = _described(command)
    yield f"### {name}"
    yield f"```\n{' '.join(usage)}\n```"
    for block in text.split("\n\n"):
        yield paragraph(literal(block))
    if arguments or options:
        yield bullets([*map(_argument, arguments), *map(_option, options)])
    if exits:
        yield paragraph(f"Exit codes: {literal(exits)}")


def _described(command: Any) -> tuple[str, str]:
    """The help of a command, and what it says about exit codes and all that stands behind it."""
    text, *exits = EXIT.split(inspect.cleandoc(command.help or ""), maxsplit=1)
    return text.strip(), "".join(exits).strip()


def _usage(argument: Any) -> str:
    name = argument.metavar or str(argument.name).upper()
    name = f"{name.removesuffix('...')}..." if argument.nargs == -1 else name
    return name if argument.required else f"[{name}]"


def _argument(argument: Any) -> str:
    return f"{code(argument.metavar or str(argument.name).upper())}: {_help(argument)}"


def _option(option: Any) -> str:
    names = [*option.opts, *option.secondary_opts]
    value = "" if getattr(option, "is_flag", False) else f" {option.metavar or _kind(option)}"
    return f"{', '.join(code(name + value) for name in names)}: {_help(option)}"


def _kind(option: Any) -> str:
    return {int: "INTEGER", float: "NUMBER"}.get(option.type_descriptor.annotation, "TEXT")


def _help(parameter: Any) -> str:
    """What a parameter is for, its default and its bounds."""
    notes = ["required"] if parameter.required and parameter.param_type_name == "option" else []
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    notes += [f"at least {least:,.10g}"] if least is not None else []
    notes += [f"at most {most:,.10g}"] if most is not None else []
    default = parameter.default
    if not getattr(parameter, "is_flag", False) and isinstance(default, str | int | float) and default != "":
        notes.append(f"default {code(f'{default:g}' if isinstance(default, float) else default)}")
    said = literal(str(getattr(parameter, "help", None) or ""))
    return f"{said} ({', '.join(notes)})" if notes else said


def settings() -> str:
    """Every environment variable that Onceproof reads."""
    texts = []
    for name, field in Settings.model_fields.items():
        default = (
            ""
            if field.default_factory
            else f" (default {'none' if field.default is None else code(_value(field.default))})"
        )
        texts.append(f"{code(f'ONCEPROOF_{name.upper()}')}: {literal(field.description or '')}{default}")
    return page(
        "Settings",
        "Environment variables that the command and Airflow's tasks read. In a container a value may also come from "
        "the file `/run/secrets/onceproof_NAME`. A variable that is empty counts as not set.",
        [bullets(texts)],
    )


def _parameter(name: str, parameter: Parameter) -> str:
    choices = f"; one of {codes(parameter.choices)}" if parameter.choices else ""
    bounds = f"; {parameter.bounds}" if parameter.bounds else ""
    default = parameter.default if parameter.default != "" else "empty"
    default = str(default).lower() if isinstance(default, bool) else default
    return f"{code(name)} (default {code(default)}): {literal(parameter.description)}{choices}{bounds}"


def scenarios() -> str:
    """Every scenario with its variants and parameters."""
    of_faults = {name for fault in FAULTS.values() for name in fault.parameters.describe()}
    parts = []
    for scenario in SCENARIOS.values():
        parts.append(f"## {scenario.name}")
        parts.append(paragraph(f"[{literal(scenario.title)}](../scenarios/{scenario.name}.md)."))
        changes = {
            v.name: ", ".join(f"{n}={_value(x)}" for n, x in v.parameters.items()) for v in scenario.variants.values()
        }
        parts.append("Variants:")
        parts.append(
            bullets(
                f"{code(v.name)}: {literal(v.description)}" + (f" (`{changes[v.name]}`)" if changes[v.name] else "")
                for v in scenario.variants.values()
            )
        )
        parts.append("Parameters:")
        own = {name: parameter for name, parameter in scenario.settable.items() if name not in of_faults}
        parts.append(bullets(_parameter(name, parameter) for name, parameter in own.items()))
    return page(
        "Scenarios, variants and parameters",
        "A variant names values of parameters, which stand in parentheses. `onceproof trial --set NAME=VALUE` changes "
        "a parameter. The parameters of faults are on [their own page](faults.md).",
        parts,
    )


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def faults() -> str:
    """Every fault, and the scenarios into which it can be injected."""
    head = "| scenario | " + " | ".join(str(number) for number in range(1, len(FAULTS) + 1)) + " |"
    rows = [head, "|---" * (len(FAULTS) + 1) + "|"]
    for scenario in SCENARIOS.values():
        choices = {fault.name for fault in scenario.faults}
        rows.append(
            f"| {code(scenario.name)} | " + " | ".join("●" if name in choices else "" for name in FAULTS) + " |"
        )
    numbered = "\n".join(f"{number}. [{code(name)}](#{name})" for number, name in enumerate(FAULTS, 1))
    parts = [numbered, "\n".join(rows)]
    for fault in FAULTS.values():
        parts += [f"## {fault.name}", paragraph(f"{literal(fault.effect)} {literal(fault.undone)}")]
        since = f" It needs Kafka Streams {fault.since} or later." if fault.since else ""
        brokers = f" It needs {fault.nodes} brokers or more." if fault.nodes > 1 else ""
        parts.append(paragraph(f"The scenario must have this: {literal(fault.needs)}.{since}{brokers}"))
        parts.append(bullets(_parameter(name, parameter) for name, parameter in fault.parameters.describe().items()))
    return page(
        "Faults and scenarios",
        "`onceproof trial SCENARIO --fault NAME` injects a fault. A dot says that the scenario allows the fault with "
        "the number of the column. How a trial proves that a fault took effect is in [faults](../faults.md).",
        parts,
    )


def promises() -> str:
    """Every promise with its anomalies, and every anomaly."""
    parts = ["## Promises"]
    parts += [
        bullets(
            f"{code(promise.name)}: {literal(promise.sentence)} Suite {code(promise.suite)}; anomalies "
            f"{codes(promise.anomalies)}."
            for promise in PROMISES.values()
        )
    ]
    parts += ["## Anomalies"]
    parts += [
        bullets(
            f"{code(anomaly.name)}, one witness per {anomaly.per}: {literal(anomaly.sentence)}"
            + (" Alone it makes no cell red." if anomaly.informational else "")
            for anomaly in ANOMALIES.values()
        )
    ]
    parts += ["## The least number of comparisons"]
    counted = {name: promise.least for name, promise in PROMISES.items()}
    parts += [
        paragraph("A promise counts as kept only if it was compared often enough: one comparison for"),
        bullets(
            f"{RULES[least] if isinstance(least, str) else f'{least} in all'}: "
            f"{codes(name for name, own in counted.items() if own == least)}"
            for least in dict.fromkeys(counted.values())
        ),
        paragraph(
            "A lost record is not compared. So a promise may be compared less often if its suite has an anomaly, or "
            f"one of these: {codes(sorted(LOSSES))}. The trial is red then, and says so. Without any of them it "
            "is an `error`."
        ),
    ]
    return page("Promises and anomalies", "Onceproof checks these promises of Kafka Streams in each trial.", parts)


def attributes(of: type) -> dict[str, str]:
    """What the docstring of a class says about each attribute.

    Raises:
        ValueError: it leaves out an attribute, or describes one that is not there.
    """
    described = inspect.getdoc(of) or ""
    _, _, block = described.partition("\nAttributes:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", block, re.MULTILINE)
    texts = {name: " ".join(text.split()) for name, text in found}
    if texts.keys() != of.__annotations__.keys():
        raise ValueError(f"{of.__name__} and its docstring differ: {sorted(texts.keys() ^ of.__annotations__.keys())}.")
    return texts


def keys() -> str:
    """Every key of the registry of known issues."""
    headings: Mapping[str, type] = {
        "[[issue]]": KnownIssue,
        "[[issue.explains]]": Explanation,
        "[[avoided]]": Avoidance,
    }
    parts = []
    for heading, of in headings.items():
        parts.append(f"## {heading.strip('[]')}")
        parts.append(paragraph((inspect.getdoc(of) or "").partition("\n")[0]))
        parts.append(bullets(f"{code(name)}: {literal(text)}" for name, text in attributes(of).items()))
    return page(
        "Keys of the registry",
        "The tables of `src/onceproof/model/known_issues.toml` and their keys. How a row is added is in "
        "[adding a known issue](../adding-a-known-issue.md).",
        parts,
    )


def _range(first: Release, last: Release) -> str:
    return f"from {first} on" if last == LATER else str(first) if first == last else f"{first} to {last}"


def _is_on(line: tuple[int, int], issue: KnownIssue) -> bool:
    """Whether one release of a line, such as `(3, 9)`, may have an issue."""
    return any((first.major, first.minor) <= line <= (last.major, last.minor) for first, last in issue.affected)


def issues() -> str:
    """The known issues of each release line, and each known issue."""
    rows = registry().issues
    ends = {end for issue in rows for ends in (*issue.affected, issue.fixed) for end in ends if end != LATER}
    listed = (
        f"| [{issue.key}](#{anchor(issue.key)}) | {literal(issue.title)} | {', '.join(issue.ranges)} |"
        for issue in rows
    )
    table = "\n".join(["| issue | title | affected |", "| -- | -- | -- |", *listed])
    parts = [table]
    newest = {major: max(end.minor for end in ends if end.major == major) for major in sorted({e.major for e in ends})}
    lines = [(major, minor) for major, last in newest.items() for minor in range(last + 1)]
    here = {line: [issue.key for issue in rows if _is_on(line, issue)] for line in lines}
    by_line = bullets(
        f"{major}.{minor}: {'; '.join(f'[{key}](#{anchor(key)})' for key in named) or 'none'}"
        for (major, minor), named in here.items()
    )
    for issue in rows:
        of = "brokers" if issue.culprit == OF_BROKERS else "Kafka Streams"
        ranges = ", ".join(_range(*ends) for ends in issue.affected)
        link = f" [Report]({url_of(issue.key)})." if url_of(issue.key) else ""
        parts += [f"## {issue.key}", paragraph(f"{literal(issue.title.rstrip('.'))}.{link}")]
        chance = dict.fromkeys(issue.incidental, " (incidental)")
        shown = [
            f"{code(name)}{chance.get(name, '')}: {codes(names) or 'no variant as it is'}"
            for name, names in sorted(issue.variants.items(), key=lambda shows: shows[0] in chance)
        ]
        shown += [f"{code(name)} (incidental): {codes(names)}" for name, names in issue.sometimes.items()]
        parts.append(
            bullets(
                [
                    f"Affected {of}: {ranges}. Fixed in: {', '.join(map(str, issue.fixed)) or 'no release'}.",
                    f"Anomalies: {codes(issue.anomalies)}.",
                    f"Symptom: {literal(issue.symptom)}",
                    f"Condition: {literal(issue.condition)}",
                    f"Remedy: {literal(issue.remedy)}",
                    f"Shown by: {'; '.join(shown) or 'no scenario'}.",
                    *(
                        f"All of a trial or none, {codes(explanation.anomalies)}: {literal(explanation.whole_trial)}"
                        for explanation in issue.explains
                        if explanation.whole_trial
                    ),
                ]
            )
        )
    lines_say = "A line names an issue if at least one of its releases has it; the ranges of the issue say which."
    return page(
        "Known issues by release",
        "The registry of known issues: a list, then each with its symptom, condition and remedy, and last the issues "
        "of each release line. *Incidental* is a scenario that shows the issue now and then, and is not made for it. "
        "*All of a trial or none*: why nothing about a witness says whether the issue explains it.",
        [*parts, "## By release line", lines_say, by_line],
    )


LOUD = {*PROMISES["liveness"].anomalies, "aborted-by-throttle", "long-throttle", "runaway-lag", "wrong-end"}


def known_failures() -> str:
    """Every known failure by kind, with where it is seen."""
    rows = registry().issues

    def is_loud(issue: KnownIssue) -> bool:
        if {kind for cause in CAUSES if issue.key in cause.shows.values() for kind in cause.shows} == {"failed"}:
            return True
        return bool(issue.anomalies) and set(issue.anomalies) <= LOUD

    kinds: Mapping[str, Callable[[KnownIssue], bool]] = {
        "Silent": lambda issue: not is_loud(issue),
        "Loud": is_loud,
    }
    documented = [issue for issue in rows if "documented" in issue.key]
    of_brokers = [issue for issue in rows if issue.culprit == OF_BROKERS]
    unshown = [issue for issue in rows if not issue.shown]
    others = [issue for issue in rows if issue not in (*documented, *of_brokers, *unshown)]
    parts = []
    introductions = {
        "Silent": "No error appears, and the data are wrong.",
        "Loud": "A thread dies, nothing is processed any more, or the topology does not build.",
    }
    for kind, belongs in kinds.items():
        parts += [f"## {kind}", introductions[kind], _failures([issue for issue in others if belongs(issue)])]
    parts += ["## Documented", "Kafka's documentation describes this behaviour.", _failures(documented)]
    parts += [
        "## Issues of brokers",
        "The broker of a cell has it, with any release of Kafka Streams.",
        _failures(of_brokers),
    ]
    parts += [
        "## Known issues that no trial here has shown",
        "The registry has them, so that a red that they explain is `known`. The ranges are from Kafka's code.",
        _failures(unshown),
        "## Known issues that no scenario shows",
        "They have no row in the registry of known issues.",
    ]
    table = ["| issue | affected | seen by | since |  |", "|---|---|---|---|---|"]
    for failure in failures(frozenset(issue.key for issue in rows)):
        seen = failure.seen if failure.seen == "nowhere yet" else code(failure.seen)
        cells = (f"{_linked(failure.key)}: {failure.title}", failure.affected, seen, failure.since, failure.note)
        table.append(f"| {' | '.join(map(str, cells))} |")
    found = [
        "## Findings",
        paragraph(
            "Onceproof found these, the most harmful first. [The page of findings](findings/README.md) says of each "
            "how it was found, since when it is there, and which command shows it."
        ),
        bullets(f"[{_title(row['name'])}](findings/{row['name']}.md)" for row in _found()["finding"]),
    ]
    return page(
        "Known failures",
        "Each failure of released Kafka Streams that Onceproof knows, and where it can be seen. "
        "[Known issues by release](reference/issues.md) has the symptom, condition and remedy of each; "
        "`onceproof run --matrix known` runs them on their last bad and first good releases. *No JIRA* means that we "
        "found no issue.",
        [*parts, "\n".join(table), *found],
    )


def _found() -> dict[str, Any]:
    """What Onceproof has found: `docs/findings/findings.toml`."""
    return tomllib.loads((ROOT / "docs" / "findings" / "findings.toml").read_text())


def _title(name: str) -> str:
    """The title of the page of a finding."""
    return (ROOT / "docs" / "findings" / f"{name}.md").read_text().partition("\n")[0].removeprefix("# ")


def found() -> str:
    """The findings by the damage that they do, with how each was found and how it is shown."""
    rows = _found()
    head = ("", "finding", "damage", "found by", "introduced in", "reproduced on", "report")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    commands = []
    for number, row in enumerate(rows["finding"], 1):
        name, filing = row["name"], row.get("filing", 0)
        by = ", ".join(filter(None, (row.get("by", ""), row.get("culprit", ""))))
        ticket = f"[ticket {filing}]({name}/ticket.md)" if filing else f"[{row['instead']}]({name}/ticket.md)"
        cells = (
            number,
            f"[{literal(_title(name))}]({name}.md). {literal(row['harm'])}.",
            f"{row['damage']}, {'silent' if row['silent'] else 'loud'}",
            row["discovered"],
            row["introduced"] + (f" ({by})" if by else ""),
            f"{row['release']}, {row['date']}",
            ticket,
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
        commands.append(f"{number}. {code(row['command'])}")
    releases = [f"Kafka {release} is commit {code(commit)}" for release, commit in rows["commits"].items()]
    tickets = {row["filing"] for row in rows["finding"] if row.get("filing")}
    return page(
        "Findings",
        "Failures of released Kafka that Onceproof has found, and for which we found no report: "
        f"{len(rows['finding'])}, of which {sum(row['damage'] == 'critical' for row in rows['finding'])} are critical. "
        "The most harmful come first. Each has a unit test in Kafka's own terms and a patch. "
        f"{len(tickets)} tickets are ready to be filed, in the order of their numbers.",
        [
            "\n".join(lines),
            "## The command that shows each",
            paragraph(
                f"These commands reproduced them last, on the releases of the table. {'; '.join(releases)}. A command "
                "of `mvn` needs no brokers."
            ),
            "\n".join(commands),
            "## The tests of all findings",
            paragraph(
                "`KAFKA=/path/to/kafka make findings` runs the unit tests of all findings on both releases. It applies "
                "the patches to the branches 4.4 and trunk of a clone of Kafka. With them it runs the unit tests and "
                "Kafka's own tests of the touched classes. [Its table](checks.md) is of 2026-11-30. Without `KAFKA` "
                "it runs the unit tests on the releases alone. `docs/check_findings.py` says how Kafka is built "
                "without Gradle."
            ),
            "## Withdrawn",
            paragraph("This looked like a failure, and is none."),
            bullets(
                f"[{literal(_title(row['name']))}]({row['name']}.md): {literal(row['why'])}"
                for row in rows["taken_back"]
            ),
        ],
    )


def _failures(rows: Iterable[KnownIssue]) -> str:
    """A table of issues."""
    lines = ["| issue | affected | fixed in | shown by |", "|---|---|---|---|"]
    in_applications = {row.issue for row in application_issues()}
    for issue in rows:
        shown = [
            f"[{code(name)}](scenarios/{name}.md){' incidentally' if name in issue.incidental else ''}"
            + (f" {codes(variants[:2])}" if variants else "")
            for name, variants in issue.variants.items()
        ]
        shown += ["`app run`"] if issue.key in in_applications else []
        shown += ["`fuzz`"] if issue.fuzz else []
        ranges = ", ".join(_range(*ends) for ends in issue.affected)
        fixed = ", ".join(map(str, issue.fixed)) or "no release"
        lines.append(f"| {_linked(issue.key)}: {literal(issue.title)} | {ranges} | {fixed} | {'; '.join(shown)} |")
    return "\n".join(lines)


def _linked(key: str) -> str:
    """A key with its report, if it has one."""
    return f"[{key}]({url_of(key)})" if url_of(key) else key


def planted() -> str:
    """Every bug that can be injected."""
    parts = []
    for plant in plants().values():
        parts += [f"## {plant.name}", paragraph(literal(f"{plant.effect} {plant.bug}"))]
        texts = [f"Releases: {plant.releases}."]
        texts += [f"Resembles: {plant.resembles}."] if plant.resembles else []
        texts += [
            f"Found by {code(claim.scenario)} ({codes(claim.variants)}"
            + ("".join(f", `{name}={_value(value)}`" for name, value in claim.parameters.items()))
            + f") through {codes(claim.promises)}."
            for claim in plant.claims
        ]
        texts += [f"Cannot show in {code(name)}: {literal(why)}" for name, why in plant.equivalent.items()]
        parts.append(bullets(texts))
    return page(
        "Injected bugs",
        "`onceproof trial --plant NAME` injects one of these bugs into a release. How they measure a green is in "
        "[injected bugs](../planted-bugs.md).",
        parts,
    )


def compared() -> str:
    """What changes from each release to the next, of the topologies of the net."""
    rows = json.loads((ROOT / "docs" / "compared_releases.json").read_text())
    lines = ["| from | to | topologies | that differ | changed without effects |", "|---|---|---|---|---|"]
    table = (
        "The table has these comparisons for each published release and the next one. *Topologies* is the number that "
        "was compared. *That differ* counts the topologies in which a change affects the state, the results or a "
        "rolling upgrade; the link leads to an example. *Changed without effects* counts those with changes that "
        "affect none of these. `python docs/compare_releases.py` compares the pairs that the table lacks."
    )
    examples = (
        "Each example below names a topology and its changes. A record is shown as its timestamp, key and value. Key "
        "and value are in Base64; `None` is a null."
    )
    parts = []
    for row in rows:
        differ = sum(change["topologies"] for change in row["changes"])
        heading = f"{row['before']} to {row['after']}"
        message = f"[{differ}](#{anchor(heading)})" if differ else "0"
        lines.append(f"| {row['before']} | {row['after']} | {row['compared']} | {message} | {row['noted']} |")
        if differ:
            parts.append(f"## {heading}")
            parts += [_of_change(change) for change in row["changes"]]
    return page(
        "Topologies that change between releases",
        "`onceproof release compare A B` builds several hundred topologies on two releases, with and without "
        "optimization (`topology.optimization`). It gives the same records to both, and compares their sub-topologies, "
        "stores, internal topics and results.",
        [paragraph(table), "\n".join(lines), paragraph(examples), *parts],
    )


def track_record() -> str:
    """Where each known issue was last reproduced, as `tests/track_record.py` recorded it."""
    introduction = (
        "The matrix `known` runs trials that must show each known issue. This page is about the last run of it that "
        "passed. In such a run each cell in which an issue is expected is red because of that issue, and known issues "
        "explain every anomaly. CI refuses a change if the run is too old, or if its commit is no ancestor of the "
        "change ([Contributing](../CONTRIBUTING.md#stages-of-tests))."
    )
    columns = (
        "A *cell* is one variant of a scenario. Its name ends with the release of Kafka Streams (`s`), a second "
        "release if there is one (`r`), and the release of the brokers (`b`). *Red trials* has two numbers: the red "
        "trials, and the exercised trials, which met the precondition of the failure. A red counts even if its trial "
        "was not exercised. *Seen* has the number of witnesses of each anomaly."
    )
    file = ROOT / "tests" / "track_record.json"
    if not file.exists():
        return page("Track record", introduction, ["No run is recorded yet."])
    record = json.loads(file.read_text())
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(record["verdicts"].items()))
    facts = [
        f"Commit {code(record['commit'])}, {record['date'][:10]}, on brokers {', '.join(record['brokers'])}.",
        f"{record['cells']} cells: {counts}.",
        "Command: `onceproof run --matrix known`, as run " + code(record["run"]) + ".",
    ]
    lines = ["| issue | has it | last reproduced in | red trials | seeds | seen |", "|---|---|---|---|---|---|"]
    for issue in record["issues"]:
        for cell in issue["cells"]:
            seen = ", ".join(f"{count} {code(name)}" for name, count in sorted(cell["anomalies"].items()))
            seeds = ", ".join(map(str, cell["seeds"]))
            key, ranges = literal(issue["key"]), ", ".join(issue["affected"])
            red = f"{cell['red']} of {cell['counted']}"
            lines.append(f"| {key} | {ranges} | {code(cell['cell'])} | {red} | {seeds} | {seen} |")
    left = [f"{code(cell)}: {literal(sentence)}" for cell, sentence in record["inconclusive"].items()]
    undecided = ["## Cells that were inconclusive", bullets(left)] if left else []
    return page("Track record", introduction, [bullets(facts), paragraph(columns), "\n".join(lines), *undecided])


def _of_change(change: Mapping[str, Any]) -> str:
    """A change that several topologies have in common, with those that show it."""
    optimized, example = "optimized (`topology.optimization=all`)", code(change["named"][0])
    effects = f"Effect{'s' if len(change['effects']) > 1 else ''}: {'; '.join(change['effects'])}."
    if change["topologies"] > 1:
        where = f" All of them are {optimized}." if change["optimized"] else ""
        text = f"**{change['topologies']} topologies** change. {effects}{where} The first is {example}:"
    else:
        where = f", which is {optimized}" if change["optimized"] else ""
        text = f"**One topology** changes. {effects} It is {example}{where}:"
    return "\n\n".join([paragraph(text), bullets(map(_quoted, change["summaries"]))])


def _quoted(sentence: str) -> str:
    """A sentence in which two records that differ are code."""
    if found := re.fullmatch(r"(.* number \d+ is )(.*)(, and was )(.*)", sentence):
        before, one, between, other = found.groups()
        return f"{literal(before)}{code(one)}{between}{code(other)}"
    return literal(sentence)


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/cli.md": cli,
    "docs/reference/settings.md": settings,
    "docs/compared-releases.md": compared,
    "docs/known-failures.md": known_failures,
    "docs/findings/README.md": found,
    "docs/reference/scenarios.md": scenarios,
    "docs/reference/faults.md": faults,
    "docs/reference/promises.md": promises,
    "docs/reference/registry.md": keys,
    "docs/reference/issues.md": issues,
    "docs/reference/plants.md": planted,
    "docs/track-record.md": track_record,
}


def main() -> None:
    """Write all pages."""
    for name, write in PAGES.items():
        target = ROOT / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(write())


if __name__ == "__main__":
    main()
