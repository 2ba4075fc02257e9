"""The rules of the prose: each finds what it is for, and no look-alike."""

import pytest

from docs.prose import check, check_code, main, rules
from tests.cases import check_each


@check_each(
    "text, message",
    [
        ("The trial tells its rate.", "Write 'reports, shows or says', not 'tells'."),
        ("Its rate is told.", "Write 'is reported', not 'is told'."),
        ("It shows by chance.", "Write 'incidentally, sometimes', not 'by chance'."),
        ("Spark reads it. What it finds is red.", "Begin the sentence with its subject, not with 'What'."),
        ("- Of these one is red.", "Begin the sentence with its subject, not with 'Of'."),
        (f"It has {'very ' * 30}many.", "Write one idea a sentence: this one has more than 30 words."),
        ("| a |\n| -- |\n| Nobody is told. |", "Write 'is reported', not 'is told'."),
        ("No release mends it.", "Write 'fix', not 'mends'."),
        ("It closes amid a rebalance.", "Write 'during', not 'amid'."),
        ("The store is made anew.", "Write 'again', not 'anew'."),
        ("It has a patch beside the ticket.", "Write 'in addition to, next to, during', not 'beside'."),
        ("A window comes out twice.", "Write 'is emitted', not 'comes out'."),
        ("It puts out each record.", "Write 'emits', not 'puts out'."),
        ("The instance went on.", "Write 'continues', not 'went on'."),
        ("The fault strikes.", "Write 'takes effect, is injected, affects', not 'strikes'."),
        ("The fault bit.", "Write 'takes effect', not 'bit'."),
        ("A fault that never bites.", "Write 'takes effect', not 'bites'."),
        ("A bug is planted.", "Write 'injected', not 'planted'."),
    ],
)
def test_a_sentence_that_is_hard_to_read_is_found(text, message):
    assert message in [finding.message for finding in check(text, rules())]


@check_each(
    "text",
    [
        "The trials could not tell.",
        "What is a green worth?",
        "## What a green is worth",
        "| What it is |\n| -- |\n| What it does |",
        "The command prints `what it tells`, and [a link](tells.md).",
        "```\nWhat is told\n```",
        f"Releases: {'3.0.1, ' * 25}and 3.9.1.",
        f"It has {'many ' * 20}words: {'many ' * 20}words.",
        "It is a bit slower, of 64-bit numbers.",
        "## not-left-amid, wait-begins-anew",
        "close amid a rebalance (no JIRA): a stored value.",
    ],
)
def test_a_look_alike_is_not(text):
    assert check(text, rules()) == []


@check_each(
    "source, line",
    [
        ('"""A module.\n\nIts rate is told.\n"""', 3),
        ("x = 1  # which nobody reads", 1),
        ('print(f"{x} was found by chance")', 1),
        ('raise ValueError(\n    "Waited in vain."\n)', 2),
        ('def of():\n    """What a green is worth."""', 2),
        ('class Of:\n    """Of each cell its verdict."""', 2),
        ("x = 1  # goes on beside it", 1),
    ],
)
def test_a_word_in_a_comment_a_docstring_or_a_message_is_found(source, line):
    assert [finding.line for finding in check_code(source, rules())][:1] == [line]


@check_each(
    "source",
    [
        '"""Its rate is reported, and `told` is its name."""',
        "told = nobody = 1",
        'row["told"] = "not looked at enough"',  # names, and a value that others read
        'key = "close amid a rebalance (no JIRA)"',
        'phase("goes on")',
        """columns = "key int, beside string"\nrows = "side = 'beside' and beside is not null\"""",
        "planted = ()  # what is planted",  # that word is of Markdown alone
        f'"""It has {"very " * 40}many words."""',
        '"""The worth of a green.\n\nWhat it is.\n"""',
        'ask("What is a green worth?")',
        '"""A row.\n\nAttributes:\n    told: the first ones.\n"""',
    ],
)
def test_names_and_sentences_of_code_are_not(source):
    assert check_code(source, rules()) == []


def test_a_rule_of_a_kind_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match=r"^Rules of the kind script are not known here"):
        check("Text.", [{"extends": "script"}])


def test_each_finding_is_a_line_with_its_place(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nIt is told.\n")
    assert main([str(page)]) == 1
    assert capsys.readouterr().out.startswith(f"{page}:3: Write 'is reported', not 'is told'. It is told.")
    module = tmp_path / "module.py"
    module.write_text("# It is told.\n")
    assert main([str(module)]) == 1
    assert capsys.readouterr().out.startswith(f"{module}:1: Write 'is reported', not 'is told'.")
    page.write_text("# Page\n")
    assert main([str(page)]) == 0
    assert main([]) == 2
