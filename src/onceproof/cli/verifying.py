"""The command that says whether a build has the fix of a known issue."""

import json
from pathlib import Path
from typing import Annotated

import typer

from onceproof.cli.asking import (
    BrokerOption,
    JsonOption,
    MavenRepoOption,
    SeedOption,
    new_run_id,
    resolve_brokers,
    resolve_streams,
    seed_or_random,
)
from onceproof.cli.completion import complete_issue
from onceproof.cli.terminal import out, progress
from onceproof.model.errors import UsageError
from onceproof.model.json_file import encode
from onceproof.model.matrices import BROKER
from onceproof.model.run_folder import RunFolder
from onceproof.settings import get_settings


def verify_fix(
    issue: Annotated[
        str, typer.Argument(metavar="KEY", help="A known issue, e.g. KAFKA-14172.", autocompletion=complete_issue)
    ],
    build: Annotated[
        str, typer.Option(metavar="DIR|V", help="The build with the fix: the folder of its Maven repository.")
    ],
    before: Annotated[
        str | None,
        typer.Option(metavar="DIR|V", help="The build without it; by default the last affected release."),
    ] = None,
    maven_repo: MavenRepoOption = [],
    broker: BrokerOption = BROKER,
    trials: Annotated[int, typer.Option(min=2, help="Trials of a scenario on both builds, at most.")] = 60,
    seed: SeedOption = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answer as Markdown, for a pull request.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Prove a fix: the scenarios of an issue are red on the build before, and green, often enough, on the one with it.

    Exit: 0 proven, 1 not fixed, 2 usage, 3 could not tell, 4 error.
    """
    from onceproof.campaigns.verify_fix import verbs
    from onceproof.page.fix import sentences, table, write_markdown
    from onceproof.processes.signals import interruptible

    known = verbs.issue_of(issue)
    if markdown is not None and markdown.is_dir():
        raise UsageError(f"{markdown} is a folder: name a file to write.")
    [old] = resolve_streams([before or verbs.last_bad(known)], maven_repo if before else [])
    [new], [brokers] = resolve_streams([build], maven_repo), resolve_brokers([broker], maven_repo)
    question = verbs.ask(known, old, new, brokers, trials, seed_or_random(seed))
    run = RunFolder(get_settings().runs / new_run_id())
    with interruptible(), progress(question.title) as report:
        answer = verbs.verify(run, question, report)
    if markdown is not None:
        write_markdown(answer, markdown)
    if as_json:
        print(json.dumps(encode(answer)))
    else:
        out.print(table(answer))
        for sentence in sentences(answer):
            out.print(sentence, markup=False, soft_wrap=True)
        out.print(f"Folder  {run.path}", markup=False, soft_wrap=True)
    raise typer.Exit(answer.proof.exit_code)
