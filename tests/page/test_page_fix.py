"""A fix, as people read about it."""

from dataclasses import replace

import pytest
from rich.console import Console

from onceproof.campaigns.verify_fix.answer import Proof
from onceproof.model.errors import UsageError
from onceproof.model.sensitivity import Tally
from onceproof.page.fix import sentences, table, write_markdown
from tests.specimens.files import an_answer_about_a_fix

MARKDOWN = """\
## ✔ KAFKA-14172: proven

State stores lose state. Before: 3.4.0, after: 3.4.1@ab12cd3, broker 3.9.2.

|  | scenario | variant | red before | rate, 95 % | red after | missed |
|---|---|---|---|---|---|---|
| ✔ proven | enumerator | DEFAULT\\_CONFIG | 2 of 2 | 34 % to 100 % | 0 of 3 | ≤ 3.5 % |

- enumerator: 3.4.0 shows it, 3.4.1@ab12cd3 does not. 3 exercised trials of the build were green: with 95 % \
confidence no bug is left that shows in 63 % of trials or more.

```
onceproof issue verify-fix KAFKA-14172 --before 3.4.0 --build 3.4.1@ab12cd3
```
"""


def test_a_proof_as_markdown(tmp_path):
    write_markdown(an_answer_about_a_fix(), tmp_path / "fix.md")
    assert (tmp_path / "fix.md").read_text() == MARKDOWN
    with pytest.raises(UsageError, match="is a folder: name a file"):
        write_markdown(an_answer_about_a_fix(), tmp_path)


def test_no_path_of_this_machine_is_in_it(tmp_path):
    answer = an_answer_about_a_fix()
    failed = replace(answer.scenarios[0], proof=Proof.UNKNOWN, reason="A broker died; see /root/me/broker.log.")
    write_markdown(replace(answer, proof=Proof.UNKNOWN, scenarios=(failed,)), tmp_path / "fix.md")
    text = (tmp_path / "fix.md").read_text()
    assert "/root" not in text
    assert "## ? KAFKA-14172: could not tell" in text


def test_a_table_for_the_terminal():
    answer = an_answer_about_a_fix()
    red = replace(answer.scenarios[0], proof=Proof.NOT_FIXED, after=Tally(1, 1), missed=None, interval=None)
    console = Console(width=140)
    with console.capture() as text:
        console.print(table(replace(answer, proof=Proof.NOT_FIXED, scenarios=(red,))))
    reported = text.get()
    assert "KAFKA-14172, 3.4.0 to 3.4.1@ab12cd3: not fixed" in reported
    assert "✘ not fixed  enumerator  DEFAULT_CONFIG  2 of 2" in reported
    assert "1 of 1" in reported
    assert list(sentences(replace(answer, scenarios=(red,)))) == [f"enumerator: {red.reason}"]
