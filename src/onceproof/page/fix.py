"""The result of `issue verify-fix`, for people: a table in the terminal, Markdown for a pull request."""

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table
from rich.text import Text

from onceproof.campaigns.verify_fix.answer import ComparedVariant, FixAnswer, Proof
from onceproof.model.decoding import decode
from onceproof.model.json_file import encode
from onceproof.model.run_folder import RunFolder
from onceproof.page.exports import write_text
from onceproof.results.evidence.text import escape
from onceproof.results.redaction import Redaction

SIGNS = {Proof.PROVEN: "\N{HEAVY CHECK MARK}", Proof.NOT_FIXED: "\N{HEAVY BALLOT X}", Proof.UNKNOWN: "?"}
COLUMNS = ("", "scenario", "variant", "red before", "rate, 95 %", "red after", "missed")


def table(answer: FixAnswer) -> Table:
    """The scenarios, one a row."""
    title = f"{answer.issue}, {answer.before} to {answer.build}: {answer.proof}"
    shown = Table(*COLUMNS, title=title, title_justify="left", box=None)
    for compared in answer.scenarios:
        shown.add_row(*map(Text, _row(compared)))
    return shown


def sentences(answer: FixAnswer) -> Iterator[str]:
    """The meaning of the numbers, a sentence or two for each scenario."""
    for compared in answer.scenarios:
        yield f"{compared.scenario}: {compared.reason}{_power(compared)}"


def write_markdown(answer: FixAnswer, target: Path) -> None:
    """Write it for a pull request, without what must not leave the machine.

    Raises:
        UsageError: the target is a folder.
        HarnessError: it cannot be written.
    """
    redacted = decode(FixAnswer, Redaction.of(RunFolder(Path(answer.folder))).data(encode(answer)))
    write_text(target, "\n".join(_markdown(redacted)) + "\n")


def _markdown(answer: FixAnswer) -> Iterator[str]:
    yield f"## {SIGNS[answer.proof]} {escape(answer.issue)}: {answer.proof}"
    yield f"\n{escape(answer.title)}. Before: {answer.before}, after: {answer.build}, broker {answer.broker}.\n"
    yield f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
    for compared in answer.scenarios:
        yield f"| {' | '.join(map(escape, _row(compared)))} |"
    yield ""
    yield from (f"- {escape(line)}" for line in sentences(answer))
    yield f"\n```\n{answer.command}\n```"


def _row(compared: ComparedVariant) -> tuple[str, ...]:
    interval = "" if compared.interval is None else _percent("{:.0%} to {:.0%}", *compared.interval)
    missed = "" if compared.missed is None else _percent("≤ {:.1%}", compared.missed)
    before, after = (f"{tally.red} of {tally.counted}" for tally in (compared.before, compared.after))
    return (
        f"{SIGNS[compared.proof]} {compared.proof}",
        compared.scenario,
        compared.variant,
        before,
        interval,
        after,
        missed,
    )


def _percent(form: str, *rates: float) -> str:
    return form.format(*rates).replace("%", " %")


def _power(compared: ComparedVariant) -> str:
    if compared.found_rate is None or compared.after.red:
        return ""
    rate = _percent("{:.0%}", compared.found_rate)
    trials = "trial" if compared.after.counted == 1 else "trials"
    return (
        f" {compared.after.counted} exercised {trials} of the build were green: with 95 % confidence no bug is left "
        f"that shows in {rate} of trials or more."
    )
