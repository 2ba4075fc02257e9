"""What the independent reader finds in what a drive left behind."""

from collections.abc import Mapping

from onceproof.lab.input import Input
from onceproof.lab.reading import OPEN_FOR, Read, SegmentReading, TopicReading, logs_of
from onceproof.lab.site import Site
from onceproof.model.anomaly import Findings
from onceproof.model.errors import KafkaFailedError
from onceproof.model.record import Record
from onceproof.readers.checks import CHECKS
from onceproof.readers.stores import compare_stores


def judge(site: Site, produced: Input, topics: TopicReading, segments: SegmentReading) -> Findings:
    """What the independent reader finds in the topics, the log segments and the stores.

    Raises:
        HarnessError: they cannot be read, or the input is another than was delivered.
    """
    with site.phase("read"):
        # Of a drive that failed, the transactions that were open stay so until they have timed out.
        site.measure(ended=int(site.failure is None))
        segments.begin()  # beside the readers
        if site.failure is None:
            topics.await_topics()
            if place := topics.open_transaction():
                told = f"{place}: {OPEN_FOR:g} s after the application has closed, a transaction is still open"
                site.fail(KafkaFailedError("stuck", place.rpartition("/")[0], "every transaction ends", told))
                keep_ends(site, produced)
        read = topics.read()
        if site.failure is not None:
            site.measure(**_looked_at(site, read))
        findings = CHECKS[site.plan.check](_as_far_as_committed(site, read), site.facts)
        findings.add(read.corrupt)
        findings.add(segments.compare(read))
        findings.add(list(compare_stores(site.folder.dumps(), read.records)))
        if site.failure is None and not read.corrupt:
            produced.compare(read.records["input"])
    return findings


def keep_ends(site: Site, produced: Input) -> None:
    """Keep how far the input of a drive that failed was committed, and so is to be judged."""
    site.measure(**{f"input_end/{partition}": end for partition, end in produced.committed().items()})


def _looked_at(site: Site, read: Read) -> dict[str, int]:
    """How far committed records are read: a transaction that is open now may have ended before Spark looks."""
    roles = logs_of(site.plan).roles
    return {f"{roles[topic]}_read/{p}": end for (topic, p), end in read.ends.items() if topic in roles}


def _as_far_as_committed(site: Site, read: Read) -> Mapping[str, list[Record]]:
    """The records; if the drive failed, without the input that was never processed."""
    if site.failure is None:
        return read.records
    return {**read.records, "input": [r for r in read.records["input"] if r[1] < site.facts[f"input_end/{r[0]}"]]}
