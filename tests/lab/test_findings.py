"""The unit tests of findings (`docs/findings`): red on the releases that have the bug, green where it is mended.

They are written as Kafka's own are, and run on the published jars; the patches of findings, on the sources of 4.3.1.
"""

import hashlib
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from onceproof.lab.artifacts import remembered, replay_class_path
from onceproof.lab.java import FAST_START
from onceproof.lab.maven import DEPENDENCY_PLUGIN, maven
from onceproof.model.release import Release
from tests.conftest import HERE, ROOT

pytestmark = pytest.mark.broker  # no brokers, but a JVM and Kafka's jars

FINDINGS = ROOT / "docs" / "findings"
AFFECTED, NEWEST = Release.parse("4.3.1"), Release.parse("4.4.0")
GIT = shutil.which("git") or "git"
LAUNCHER = ("org.junit.platform.console.ConsoleLauncher", "execute", "--details=none", "--disable-banner")
NULL_CHILD = "StreamsException: Found a null keyChangingChild node for OptimizableRepartitionNode"
# Tests that are red where the bug is, and what they say; the others are green everywhere.
RED = {
    "InternalStreamsBuilderSharedFilterTest.shouldBuildIfFilteredStreamIsGroupedTwice()": NULL_CHILD,
    "InternalStreamsBuilderSharedFilterTest.shouldBuildIfFilteredStreamIsGroupedAndJoined()": NULL_CHILD,
    "KTableKTableForeignKeyJoinRaceTest.shouldDeleteResultIfAnswerIsOvertaken(String)[1]": "null> but was: <A 0 + a>",
    "KTableKTableForeignKeyJoinRaceTest.shouldDeleteResultIfAnswerIsOvertaken(String)[2]": "null> but was: <A 0 + a>",
    "KTableKTableForeignKeyJoinRaceTest.shouldDeleteResultIfAnswerIsOvertaken(String)[3]": "null> but was: <A 0 + a>",
    "TaskManagerCorruptedTaskTest.shouldMarkChangelogsOfCorruptedActiveTaskBeforeCheckpoint()": (
        "Wanted but not invoked:\nstreamTask.markChangelogAsCorrupted("
    ),
    "LegacyCheckpointingStateStoreCorruptedTest.shouldNotKeepOffsetsOfCorruptedStore()": "<null> but was: <3000>",
    "KafkaConsumerStaticMemberLeaveTest.shouldLeaveGroupOnCloseOfStaticMemberThatHasUnsubscribed()": (
        "expected: <[member-1]> but was: <[]>"
    ),
    "KafkaConsumerStaticMemberLeaveTest.shouldLeaveGroupOnCloseOfStaticMemberThatIsToJoinAgain()": (
        "expected: <[member-1]> but was: <[]>"
    ),
    "KeyValueSegmentsAfterKillTest.shouldNotLockOlderSegmentWhenNewerOneIsCorrupted()": (
        "expected: <org.apache.kafka.streams.errors.TaskCorruptedException> "
        "but was: <org.apache.kafka.streams.errors.ProcessorStateException>"
    ),
    **{
        f"KafkaStreamsHalfDeletedStoreTest.shouldStartIfExpiredSegmentIsHalfDeleted(String)[{n}]": (
            "ProcessorStateException: Error opening store store.0 at location"
        )
        for n in (1, 2, 3)
    },
    "KafkaStreamsHalfDeletedStoreTest.shouldStartIfStoreOfWipedTaskIsHalfDeleted()": (
        "ProcessorStateException: Error opening store store at location"
    ),
    "LogicalKeyValueSegmentsReopenTest.shouldOpenExistingSegments()": "expected: <[0, 1, 3]> but was: <[]>",
    "LogicalKeyValueSegmentsReopenTest.shouldCleanUpExpiredSegmentsAfterReopen()": "expected: <null> but was: <[2]>",
    "ChangeLoggingSessionBytesStoreTimeTest.shouldNotLogSessionWithTimeBeforeItsEnd()": "an older record extended it",
    "KStreamWindowAggregateEmitFinalRetentionTest.shouldEmitWindowIfStreamTimeSkipsTheNextOne()": "> but was: <[]>",
    "KStreamWindowAggregateEmitFinalRetentionTest.shouldEmitAllWindowsThatClosedWithinTheEmitInterval()": (
        "expected: <[0: 1, 60: 1, 120: 1]> but was: <[120: 1]>"
    ),
    "KStreamSessionWindowAggregateClosedSessionTest.shouldNotMergeClosedSessionWithLongerRetention(boolean)[1]": (
        "but was: <[100 to 100: 1, 100 to 116: 3]>"
    ),
    "KStreamSessionWindowAggregateClosedSessionTest.shouldNotMergeClosedSessionWithLongerRetention(boolean)[2]": (
        "but was: <[100 to 100: 1, 100 to 116: 3]>"
    ),
    "KStreamSessionWindowAggregateClosedSessionTest.shouldNotMergeClosedSessionThatIsCached()": (
        "but was: <[100 to 100: 1, 100 to 116: 3]>"
    ),
    "KStreamAggregateFirstValueTest.shouldCountKeysOfCountedStream()": "expected: <{keys=3}> but was: <{keys=1}>",
    "KStreamAggregateFirstValueTest.shouldSumValuesThatDifferFromZero()": "expected: <{sum=1}> but was: <{sum=0}>",
    **{
        f"KStreamSlidingWindowAggregateTwiceTest.shouldForwardWindowOfTwoRecordsOnce(String)[{n}]": (
            "90 to 100: 2, 101 to 111: 1, 101 to 111: 1]>"
        )
        for n in (1, 2, 3)
    },
    "KStreamSlidingWindowAggregateTwiceTest.shouldForwardWindowOfTwoRecordsOnceIfTheSecondIsOutOfOrder()": (
        "105 to 115: 2, 101 to 111: 1, 101 to 111: 1, 112 to 122: 1]>"
    ),
    "KStreamSlidingWindowAggregateTwiceTest.shouldForwardWindowOfTwoRecordsOnceIfTheFirstIsEarly()": (
        "but was: <[0 to 10: 1, 6 to 16: 1, 6 to 16: 1]>"
    ),
    "KStreamSlidingWindowAggregateTwiceTest.shouldForwardWindowOfTwoRecordsOnceWithCacheOfNoBytes()": (
        "90 to 100: 2, 101 to 111: 1, 101 to 111: 1]>"
    ),
    "KStreamSlidingWindowAggregateTwiceTest.shouldSumCountOfWindowOfTwoRecordsOnce()": (
        "but was: <{85 to 95=1, 96 to 106=1, 101 to 111=2, 90 to 100=2}>"
    ),
    "KStreamSlidingWindowAggregateTwiceTest.shouldAggregateCountOfWindowOfTwoRecordsOnce()": (
        "but was: <{85 to 95=1, 96 to 106=1, 101 to 111=2, 90 to 100=2}>"
    ),
    "KStreamSlidingWindowAggregateTwiceTest.shouldCountReducedWindowOfTwoRecordsOnce()": (
        "but was: <{85 to 95=1, 96 to 106=1, 101 to 111=2, 90 to 100=1}>"
    ),
    "KStreamSlidingWindowAggregateTwiceTest.shouldCountUpdatesOfWindowOfTwoRecordsOnce()": (
        "but was: <{85 to 95=1, 96 to 106=1, 101 to 111=2, 90 to 100=1}>"
    ),
    "KStreamSlidingWindowAggregateTwiceTest.shouldLogWindowOfTwoRecordsOnceIfItIsEmittedOnClose()": (
        "expected: <[1, 1, 2, 1]> but was: <[1, 1, 2, 1, 1]>"
    ),
    **{
        f"KStreamSlidingWindowAggregateOldValueTest.shouldSumWindows(String)[{n}]": (
            "expected: <{all=4}> but was: <{all=3}>"
        )
        for n in (1, 2, 3)
    },
    **{
        f"KStreamSlidingWindowAggregateOldValueTest.{name}()": "expected: <{all=4}> but was: <{all=3}>"
        for name in (
            "shouldSumWindowsWithCacheOfNoBytes",
            "shouldSumReducedWindows",
            "shouldSumCogroupedWindows",
            "shouldSumJoinedWindows",
            "shouldSumSuppressedWindows",
            "shouldAggregateWindows",
        )
    },
    **{
        f"KStreamSlidingWindowAggregateOldValueTest.{name}()": "expected: <{all=2}> but was: <{all=1}>"
        for name in (
            "shouldSumWindowsThatPassFilter",
            "shouldCountWindowsThatBeginWithInitialValue",
            "shouldCountRightWindowOfPreviousRecord",
            "shouldCountWindowsOfEarlyRecords",
        )
    },
    "KStreamSlidingWindowAggregateOldValueTest.shouldSumWindowsOfRecordOutOfOrder()": "expected: <{all=7}> but was: <{all=6}>",
    "KStreamSlidingWindowAggregateOldValueTest.shouldCountReducedWindows()": "expected: <{all=3}> but was: <{all=2}>",
    "KStreamSlidingWindowAggregateOldValueTest.shouldCountReducedWindowsByTheirValue()": "but was: <{1=1, 2=1}>",
    "KStreamAggregateFirstValueTest.shouldDeleteRowThatFilterNoLongerAccepts()": "<{a=null}> but was: <{a=10}>",
    **{
        f"KStreamWindowAggregateOldValueTest.{name}()": said
        for name, said in {
            "shouldCountTumblingWindows": "expected: <{all=4}> but was: <{all=1}>",
            "shouldCountHoppingWindows": "expected: <{all=7}> but was: <{all=1}>",
            "shouldCountWindowsOfCogroupedStream": "expected: <{all=4}> but was: <{all=1}>",
            "shouldSumWindowsWithInitialValue": "expected: <{all=33}> but was: <{all=12}>",
            "shouldTakeOffWindowThatFilterNoLongerAccepts": "expected: <{all=0}> but was: <{all=1}>",
        }.items()
    },
    **{
        f"KTableSuppressOldValueTest.{name}": said
        for name, said in {
            "shouldSumFinalCounts(boolean)[1]": "expected: <{k=12}> but was: <{k=6}>",
            "shouldSumFinalCounts(boolean)[2]": "expected: <{k=12}> but was: <{k=6}>",
            "shouldCountFinalWindows()": "expected: <{k=4}> but was: <{k=1}>",
            "shouldCountFinalWindowsByTheirValue()": "but was: <{2=0, 3=1}>",
            "shouldSumFinalCountsOfSlidingWindows()": "expected: <{k=7}> but was: <{k=6}>",
            "shouldSumFinalCountsOfSessions()": "expected: <{k=6}> but was: <{k=4}>",
            "shouldCountRowOnceInGroupThatItIsEmittedIn()": "but was: <{0=1, x=1, z=1}>",
            "shouldCountRowOnceInGroupIfBufferIsFull()": "but was: <{b=1, x=1, z=1}>",
            "shouldTakeRowOffThatFilterNoLongerAccepts()": "expected: <{good=0}> but was: <{good=1}>",
        }.items()
    },
    **{
        f"KStreamImplProcessedKeyTest.{name}": said
        for name, said in {
            "shouldRepartitionByKeyOfProcessorBehindSelectKey(String)[1]": "but was: <[selected]>",
            "shouldRepartitionByKeyOfProcessorBehindSelectKey(String)[2]": "but was: <[selected]>",
            "shouldRepartitionByKeyOfProcessorBehindMap()": "but was: <[mapped]>",
        }.items()
    },
    "KStreamKStreamLeftJoinLateResultTest.shouldEmitNonJoinedRecordOnceItsWindowHasClosed()": "but was: <[385 by 440]>",
    "KStreamKStreamLeftJoinLateResultTest.shouldEmitNonJoinedRecordsOfSteadyStreamOnceTheirWindowsHaveClosed()": (
        "but was: <[0 by 60, 10 by 110, 20 by 110, 30 by 110, 40 by 110, 50 by 110, 60 by 160, "
    ),
    "RocksDBTimeOrderedKeyValueBufferLossTest.shouldEvictRestoredRecords()": "[order-17, order-18]> but was: <[]>",
    "RocksDBTimeOrderedKeyValueBufferLossTest.shouldBufferAfterRestore()": "it is not late",
    "RocksDBTimeOrderedKeyValueBufferLossTest.shouldEvictRecordsOfBeforeReopen()": "expected: <[b, c]> but was: <[]>",
    "InMemoryTimeOrderedKeyValueChangeBufferHeldAgainTest.shouldRestoreTimeOfKeyThatIsHeldAgain()": (
        "it was evicted, and has been held again since 100 ==> expected: <100> but was: <0>"
    ),
    "InMemoryTimeOrderedKeyValueChangeBufferHeldAgainTest.shouldNotEvictRestoredKeyBeforeItsTimeIsUp()": (
        "expected: <[b at 50]> but was: <[a at 100, b at 50]>"
    ),
    "StreamTaskDeadLetterPositionTest.shouldCommitPositionBehindDeadLetters()": "expected: <3> but was: <2>",
    "StreamTaskDeadLetterPositionTest.shouldCommitPositionBehindDeadLettersOfTaskThatHasProcessedNothing()": (
        "the dead letters of the records 0 and 1 are in this transaction ==> expected: <true> but was: <false>"
    ),
    "WindowedStoreSupplierRetentionTest.shouldKeepChangelogAsLongAsSuppliedWindowStore()": (
        "expected: <691200000> but was: <90000000>"
    ),
    "WindowedStoreSupplierRetentionTest.shouldKeepChangelogAsLongAsSuppliedStoreOfSlidingWindows()": (
        "expected: <691200000> but was: <93600000>"
    ),
    "WindowedStoreSupplierRetentionTest.shouldKeepChangelogAsLongAsSuppliedSessionStore()": (
        "expected: <691200000> but was: <90000000>"
    ),
    "RocksDBVersionedStoreReopenTest.shouldFindHistoryAfterReopen()": "expected: <v1> but was: <null>",
    "RocksDBVersionedStoreReopenTest.shouldFindDeletionAfterReopen()": "expected: <null> but was: <late>",
    "RocksDBVersionedStoreReopenTest.shouldPutAfterDeletionAndReopen()": (
        "Timestamp is too large to be found in this segment."
    ),
    "RocksDBVersionedStoreSameTimestampTest.shouldNotReviveKeyThatWasDeletedAtTheTimestampOfItsValue()": (
        "deleted at 2,000 ==> expected: <null> but was: <late>"
    ),
    "RocksDBVersionedStoreSameTimestampTest.shouldHaveTheLastChangeOfEachTimestamp()": "expected: <null> but was: <v",
    "RocksDBVersionedStoreRestoreTest.shouldNotReviveDeletedKeyWhenRestoredInOneBatch()": "<null> but was: <late>",
    "RocksDBVersionedStoreRestoreTest.shouldNotReviveKeyThatWasDeletedInAnEarlierBatch()": "<null> but was: <late>",
    "RocksDBVersionedStoreRestoreTest.shouldHaveAfterRestoreWhatItHadBefore()": "expected: <null> but was: <v",
}
ONLY_4_4_0 = {
    "StateManagerUtilTransactionalStoresTest.shouldWipeTaskWhoseStoreWasFoundCorruptedWhenOpened(boolean)[2]": (
        "the next attempt must find nothing to open ==> expected: <false> but was: <true>"
    ),
}
NOT_FOR_4_3_1 = {"transactional-stores-switched-on-after-a-kill"}  # and without a patch: 4.4.0 has no published sources
MENDED_IN_4_4_0 = {"TaskManagerCorruptedTaskTest.shouldMarkChangelogsOfCorruptedActiveTaskBeforeCheckpoint()"}
JAVA = {("IllegalArgumentException", "")}
# The page says so: two threads of an instance, a group and a broker take part in it.
WITHOUT_TEST = {"close-waits-for-its-own-member"}
TICKETS = sorted(FINDINGS.glob("*/ticket.md"))


@cache
def tools() -> list[Path]:
    """JUnit, Mockito and, of the affected release, Kafka's sources and tests, as the pom of the findings names them."""
    pom = FINDINGS / "pom.xml"
    out = HERE.artifacts / f"findings-{hashlib.sha256(pom.read_bytes()).hexdigest()[:8]}.classpath"
    if jars := remembered(out):
        return jars
    options = (f"-Dkafka={AFFECTED}", "-Ppytest", f"-Dmdep.outputFile={out}")
    goal = f"{DEPENDENCY_PLUGIN}:build-classpath"
    answer = maven(HERE.maven, pom, goal, *options, to="resolve what the tests of findings need")
    assert answer.succeeded, answer.reason
    return remembered(out)


def tool(ending: str) -> Path:
    return next(jar for jar in tools() if jar.name.endswith(ending))


def joined(*paths: Path) -> str:
    return ":".join(map(str, paths))


def compiled(sources: list[Path], class_path: str, into: Path) -> Path:
    """The classes of sources, in a folder."""
    compiler = Path(HERE.java).with_name("javac") if "/" in HERE.java else Path("javac")
    command: list[str | Path] = [
        compiler,
        "-nowarn",
        "-proc:none",
        "--release",
        "17",
        "-cp",
        class_path,
        "-d",
        into,
        *sources,
    ]
    subprocess.run(command, check=True)
    return into


@pytest.fixture(scope="module")
def tests(tmp_path_factory) -> dict[Release, Path]:
    """The classes of the tests, compiled once for each release, as Kafka's own classes are not an interface."""
    folders = {}
    for release in (AFFECTED, NEWEST):
        sources = sorted(FINDINGS.glob("*/*Test.java"))
        if release == AFFECTED:
            sources = [source for source in sources if source.parent.name not in NOT_FOR_4_3_1]
        class_path = joined(*replay_class_path(HERE, release), *launcher())
        folders[release] = compiled(sources, class_path, tmp_path_factory.mktemp("tests"))
    return folders


@pytest.fixture(scope="module")
def patched(tmp_path_factory) -> Path:
    """The classes of the affected release that the patches of the findings change."""
    folder = tmp_path_factory.mktemp("sources")
    changed = []
    for patch in sorted(FINDINGS.glob("*/*.patch")):
        if patch.name == "fix.patch" and patch.with_name("4.3.patch").exists():  # that is for 4.4 and later only
            continue
        for path in re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(), re.MULTILINE):
            source = folder / path
            source.parent.mkdir(parents=True, exist_ok=True)
            if source in changed:  # by a patch before
                continue
            module, _, name = path.partition("/src/main/java/")
            with zipfile.ZipFile(tool(f"kafka-{module}-{AFFECTED}-sources.jar")) as sources:
                source.write_bytes(sources.read(name))
            changed.append(source)
        for arguments in (["init", "--quiet"], ["apply", patch]):  # without a repository of its own it would take ours
            subprocess.run([GIT, *arguments], cwd=folder, check=True)
    return compiled(changed, joined(*replay_class_path(HERE, AFFECTED)), tmp_path_factory.mktemp("patched"))


def launcher() -> list[Path]:
    """JUnit and Mockito."""
    return [jar for jar in tools() if "org/apache/kafka" not in str(jar) and "slf4j" not in jar.name]


def ran(release: Release, tests: Path, reports: Path, *first: Path) -> dict[str, str]:
    """The tests of all findings, run on a release in one JVM; with what was wrong, or an empty text."""
    class_path = joined(*first, tests, *replay_class_path(HERE, release), *launcher())
    command = [HERE.java, *FAST_START, "-Xmx512m", "-cp", class_path, *LAUNCHER]
    done = subprocess.run(
        [*command, f"--scan-classpath={tests}", f"--reports-dir={reports}"],
        capture_output=True,
        text=True,
        check=False,
    )
    report = reports / "TEST-junit-jupiter.xml"
    assert report.exists(), done.stdout + done.stderr
    return dict(results(report))


def results(report: Path) -> Iterator[tuple[str, str]]:
    for case in ElementTree.parse(report).getroot().iter("testcase"):  # noqa: S314 - of our own launcher
        assert case.find("skipped") is None, case.attrib
        failure = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
        said = "" if failure is None else f"{failure.get('message', '')}\n{failure.text}"
        yield f"{case.attrib['classname'].rpartition('.')[2]}.{case.attrib['name']}", said


@pytest.mark.parametrize("release", [AFFECTED, NEWEST], ids=str)
def test_they_are_red_where_the_bug_is_and_say_why(release, tests, tmp_path):
    found = ran(release, tests[release], tmp_path)
    red = dict(RED)
    if release == NEWEST:
        red = {name: said for name, said in red.items() if name not in MENDED_IN_4_4_0} | ONLY_4_4_0
    assert {name for name, said in found.items() if said} == red.keys()
    for name, said in red.items():
        assert said in found[name], name
    alike = 70 if release == AFFECTED else 72  # green; two of 4.4.0 are one that it mends and one of its own
    assert len(found) - len(red) == alike


def test_they_are_green_with_the_patches_of_the_findings(tests, patched, tmp_path):
    assert {name: said for name, said in ran(AFFECTED, tests[AFFECTED], tmp_path, patched).items() if said} == {}


@pytest.mark.parametrize("ticket", TICKETS, ids=lambda ticket: ticket.parent.name)
def test_what_a_ticket_names_is_there(ticket):
    """Kafka's classes, their methods, and tests, Kafka's or ours."""
    folders = (FINDINGS, ROOT / "streams_app" / "src" / "test")
    ours = {file.stem: file.read_bytes() for folder in folders for file in folder.rglob("*Test.java")}
    named = set(re.findall(r"`([A-Z]\w*[a-z]\w*[A-Z]\w+)(?:\.(\w+))?[^`]*`", ticket.read_text()))
    assert named
    for name, member in sorted(named - JAVA):
        declared = ours[name] if name in ours else classes(name)
        assert declared, f"There is no class {name}."
        assert not member or member.encode() in declared, f"{name} has no {member}."


def classes(name: str) -> bytes:
    """The bytes of Kafka's classes of that simple name, which have the names of their members as text."""
    found = b""
    for jar in [*replay_class_path(HERE, AFFECTED), *replay_class_path(HERE, NEWEST), *tools()]:
        with zipfile.ZipFile(jar) as archive:
            wanted = [entry for entry in archive.namelist() if re.search(rf"[/$]{name}\.class$", entry)]
            found += b"".join(map(archive.read, wanted))
    return found


def test_each_finding_has_its_page_its_ticket_its_test_and_its_patch():
    pages = [page for page in sorted(FINDINGS.glob("*.md")) if page.stem not in WITHOUT_TEST]
    assert len(pages) == len(TICKETS) == 22
    for page in pages:
        folder = page.with_suffix("")
        assert f"({folder.name}/ticket.md)" in page.read_text()
        endings = ("*Test.java",) if folder.name in NOT_FOR_4_3_1 else ("*Test.java", "*.patch")
        for ending in endings:
            assert list(folder.glob(ending)), f"{folder.name} has no {ending}"
        for test in folder.glob("*Test.java"):
            assert test.stem in (folder / "ticket.md").read_text()
