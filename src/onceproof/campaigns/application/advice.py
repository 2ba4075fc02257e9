"""The next step for an application that is not green on a release, in one line."""

from onceproof.model.judged import OnRelease

OTHER_PLANT = "Plant another bug, whose methods the topology calls: `onceproof check plants` lists them."
STRIKE_AGAIN = (
    "Run it again with another --seed; if the fault never takes effect, give it more records (generate), a "
    "lower rate, or another --fault."
)
STRIKE_HARDER = (
    "The crash had nothing to forget, so this green says little about it. For a harder one give larger records "
    "(generate: size = 1000), a longer commit.interval.ms (2000), and no record cache (statestore.cache.max.bytes = 0)."
)
RUN_ALONE = "Run it again on a machine that has less to do."
PROMISE_MORE = (
    'Promise what holds in each run: `replay` of an output whose last values the input determines (compare = "final"), '
    "`unique`, or `each-input-once`."
)
LESS = ' If its last values hang on the clock or on an order that nothing binds, say compare = "keys".'


def advice_on_red(result: OnRelease, run: str) -> str:
    """The remedies of what is known, or how to make a finding of what is not.

    Args:
        result: what the release showed.
        run: the id of the run.
    """
    remedies = " ".join(
        [*(f"{issue.key}: {issue.remedy}" for issue in result.issues), *(cause.remedy for cause in result.causes)]
    )
    if remedies and not result.unexplained:
        return remedies
    if result.plant:
        return f"The bug {result.plant.name} was planted: run it without --plant to learn of Kafka."
    left = ", ".join(f"{count:,} {name}" for name, count in result.unexplained.items())
    others = f" Known there of such a topology, and no explanation: {', '.join(result.concerned)}."
    return (
        f"No known issue explains {left}. {_to_find_out(result)}, and write `onceproof results evidence {run} "
        f"{result.streams}`."
        f"{'' if result.outputs else LESS}{others if result.concerned else ''}{f' {remedies}' if remedies else ''}"
    )


def _to_find_out(result: OnRelease) -> str:
    """How to find out what an unknown red is of."""
    if result.fault is None:
        return (
            "It had no fault: if it is so on older releases, too (--streams), no release is to blame, but what the "
            "application does. Else see since when"
        )
    return (
        "To make a finding of it, run it with other seeds (--seed) and on older releases (--streams), to see how often "
        "and since when"
    )
