"""The verb of DAG `qualify`: whether the harness still sees on a release."""

from collections.abc import Callable

from onceproof.campaigns.requests import QualifyRequest
from onceproof.model.errors import ExitCode
from onceproof.model.qualification import Qualification
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.processes.signals import end_by_sigterm
from onceproof.scenarios import scenario
from onceproof.settings import get_settings

# As in `steps`: heavy modules are imported by the verb that needs them.


def qualify(
    run: RunFolder, request: QualifyRequest, streams: str, seed: int, report: Callable[[str], None] = print
) -> Qualification:
    """Show that the harness still sees on a release; what was found is `qualification.json` of the run folder.

    It is kept for the verdicts on the release, unless it was narrowed to some scenarios.

    Args:
        run: takes the trials.
        request: what is looked for, on which brokers.
        streams: one of its releases; may be a word, as `newest`.
        seed: of the first trial, if the request has none.
        report: called with what is tried, and with what is missing.

    Raises:
        UsageError: a scenario does not exist, nothing can be looked for in it, or the brokers need a newer Java.
        HarnessError: artifacts are incomplete, or the brokers failed.
    """
    from onceproof.campaigns.qualification import trials
    from onceproof.lab.artifacts import check_published
    from onceproof.lab.java import require_java
    from onceproof.lab.releases import exact
    from onceproof.results.qualified import keep

    named, seed = (streams, request.broker or streams), request.seed_or(seed)
    settings = get_settings()
    installation = settings.installation
    release, broker = (Release.parse(*exact(installation, [name])) for name in named)
    scenarios = list(request.scenario)
    for name in scenarios:
        scenario(name)
    require_java(installation.java, broker.oldest_java, f"a broker of Kafka {broker}")
    check_published(installation, {release, broker})
    looked_for = trials.find_wanted(installation, release, broker, scenarios)
    report(f"{len(looked_for.aims)} things in {len(looked_for.trials)} trials, seed {seed}, folder {run.path}")
    with end_by_sigterm():
        found = trials.qualify(installation, run, looked_for, seed, scenarios, report)
    found.write(run.qualification_file)
    if not scenarios:
        keep(found, settings.qualifications)
    return found


def complaint(found: Qualification) -> str:
    """The complaint, in a sentence; empty if the release qualifies."""
    if found.exit_code is ExitCode.OK:
        return ""
    where = f"{found.streams} on brokers {found.broker}"
    if found.lessons:
        return f"{where} does not qualify. The harness has to learn: {'; '.join(found.lessons)}."
    doubts = "; ".join(f"{row.part} {row.name}: {row.reason}" for row in found.doubtful)
    return f"Whether the harness sees on {where} is not known: {doubts}."
