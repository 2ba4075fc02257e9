"""What proves nothing fails: a skip, an empty list of cases, an expected failure that does not come."""

import ast
import os
import subprocess
import sys

import pytest

from tests import skips
from tests.present import present
from tests.tools import SKIP, TOOLS

ALLOWED = skips.AllowedSkip(["a.py::test_a"], "only root .*", "it is so")
PROVES_NOTHING = {
    "skip": ("import pytest\ndef test_it(): pytest.skip('no time')\n", "test_skip.py::test_it was skipped (no time)"),
    "skipped_module": (
        "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): pass\n",
        "test_skipped_module.py was skipped (could not import 'no_such_module'",
    ),
    "no_case": (
        "import pytest\n@pytest.mark.parametrize('x', [])\ndef test_it(x): pass\n",
        "Empty parameter set in 'test_it'",
    ),
    "no_failure": ("import pytest\n@pytest.mark.xfail\ndef test_it(): pass\n", "[XPASS(strict)]"),
}


def ended(folder, project, *options, **variables):
    """What pytest says of the tests in a folder, with the project's configuration and hooks; and its exit code."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        [*command, "-c", project / "pyproject.toml", "--rootdir", folder, folder],
        env=os.environ | {"PYTHONPATH": f"{project / 'src'}:{project}", **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_what_proves_nothing_fails(tmp_path, project):
    for name, (written, _) in PROVES_NOTHING.items():
        (tmp_path / f"test_{name}.py").write_text(written)
    code, told = ended(tmp_path, project, "--continue-on-collection-errors")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 2 errors" in told
    for _, said in PROVES_NOTHING.values():
        assert said in told


def test_a_worker_s_skip_fails_unless_left_out_by_name(tmp_path, project):
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.browser\ndef test_left(): pass\ndef test_it(): pytest.skip('no time')\n"
    )
    code, told = ended(tmp_path, project, "-n", "1", **{SKIP: ",".join(TOOLS)})
    assert "1 failed, 1 skipped" in told
    assert code == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("test", "said", "refused"),
    [
        ("a.py::test_a", "only root is free", False),
        ("a.py::test_a[case]", "only root is free", False),
        ("a.py::test_a", "it is late", True),
        ("a.py::test_ab", "only root is free", True),
    ],
)
def test_a_skip_is_allowed_by_test_and_by_what_it_says(test, said, refused):
    sentence = skips.refusal(test, said, [ALLOWED])
    assert (sentence is not None) == refused
    assert not refused or f"was skipped ({said}), and allowed_skips.toml does not allow that" in present(sentence)


SUREFIRE = """<testsuite>
  <testcase name="one" classname="p.Test"/>
  <testcase name="other(int, String)[1]" classname="p.Test"><skipped/></testcase>
  <testcase name="other(int, String)[2]" classname="p.Test"><skipped message="it was late"/></testcase>
</testsuite>"""


def test_surefire_s_reports_are_read_and_there_must_be_some(tmp_path):
    with pytest.raises(FileNotFoundError, match="run `make test-java`"):
        list(skips.skipped(tmp_path))
    (tmp_path / "TEST-p.Test.xml").write_text(SUREFIRE)
    assert list(skips.skipped(tmp_path)) == ["p.Test.other"]


def test_every_test_that_may_be_skipped_exists(project):
    for one in skips.allowed():
        for test in one.tests:
            file, _, name = test.partition("::")
            tree = ast.parse((project / file).read_text())
            assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, test
    for one in skips.allowed("java"):
        for test in one.tests:
            package, _, method = test.rpartition(".")
            source = project / "streams_app/src/test/java" / f"{package.replace('.', '/')}.java"
            assert f" {method}(" in source.read_text(), test
