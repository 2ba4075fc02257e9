"""The features of Kafka Streams that an application uses: they decide what concerns it."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from onceproof.model.errors import UsageError
from onceproof.model.release import Release

Value = str | bool


@dataclass(frozen=True)
class Feature:
    """Something that an application may use: its values, `several` of which may apply at once, and what it means.

    `since` has the releases in which values came that 3.0.0 lacks.
    """

    name: str
    values: tuple[Value, ...]
    sentence: str
    several: bool = False
    since: Mapping[Value, Release] = field(default_factory=dict)


YES_OR_NO = (True, False)
FEATURES = {
    feature.name: feature
    for feature in (
        Feature("guarantee", ("exactly_once_v2", "at_least_once"), "processing.guarantee"),
        Feature(
            "stores",
            ("rocksdb", "in-memory", "versioned"),
            "the kinds of its state stores, [] if it has none; a versioned one is of rocksdb, too",
            several=True,
            since={"versioned": Release(3, 5, 0)},  # KIP-889
        ),
        Feature("caching", YES_OR_NO, "whether a store is cached (the DSL's are) and the cache has any bytes"),
        Feature("standbys", YES_OR_NO, "whether num.standby.replicas is 1 or more"),
        Feature("static_membership", YES_OR_NO, "whether group.instance.id is set"),
        Feature("transactional_stores", YES_OR_NO, "whether enable.transactional.statestores is true (KIP-892)"),
        Feature("state_updater", YES_OR_NO, "whether __state.updater.enabled__, which is internal, is left as it is"),
        Feature("protocol", ("classic", "streams"), "group.protocol"),
        Feature("quotas", YES_OR_NO, "whether a client quota may throttle its producers"),
        Feature(
            "joins",
            ("stream-stream", "stream-table", "stream-global-table", "table-table", "foreign-key"),
            "the kinds of its joins, [] if it has none",
            several=True,
        ),
        Feature("global_tables", YES_OR_NO, "whether it has a global table or a global store"),
        Feature("grouped_tables", YES_OR_NO, "whether it groups a KTable and aggregates it (KTable.groupBy)"),
        Feature("optimization", YES_OR_NO, "whether topology.optimization is anything but none"),
        Feature("windows", YES_OR_NO, "whether it aggregates by windows or sessions"),
        Feature("window_stores", YES_OR_NO, "whether a store has windows or sessions, also of joins"),
        Feature("punctuators", YES_OR_NO, "whether it schedules punctuations"),
        Feature("queries", YES_OR_NO, "whether clients ask its stores by KafkaStreams.query (KIP-796)"),
        Feature("skipped_records", YES_OR_NO, "whether it skips records, by an exception handler or by negative times"),
    )
}


@dataclass(frozen=True)
class Application:
    """The features that an application uses, by name; nothing is known about one that is not named."""

    uses: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)

    def lacks(self, needs: Mapping[str, Collection[Value]]) -> str | None:
        """Why something that needs one of these values of each feature cannot concern it, in words; None if it may."""
        for name, wanted in needs.items():
            if name in self.uses and not set(wanted) & set(self.uses[name]):
                return f"it needs {describe(name, wanted)}, and the application has {describe(name, self.uses[name])}"
        return None


def can_have(needs: Mapping[str, Collection[Value]], release: Release) -> bool:
    """Whether an application can use, on that release, one of the values of each feature."""
    since = {name: FEATURES[name].since for name in needs}
    return all(
        any(v not in since[name] or release.since(since[name][v]) for v in wanted) for name, wanted in needs.items()
    )


def describe(name: str, values: Collection[Value]) -> str:
    """A feature in words."""
    if set(values) <= set(YES_OR_NO):
        return name.replace("_", " ") if True in values else f"no {name.replace('_', ' ')}"
    return f"{name.replace('_', ' ')} {' or '.join(map(str, values))}" if values else f"no {name.replace('_', ' ')}"


def parse_application(text: str, name: str) -> Application:
    """Read the features of an application from TOML, as `template` has them.

    Raises:
        UsageError: it is not TOML, or names an unknown feature or value.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} is not TOML ({error}); `onceproof advise --template` prints one.") from None
    return Application(read_uses(data, name))


def read_uses(data: Mapping[str, Any], name: str) -> dict[str, tuple[Value, ...]]:
    """The features of an application from a table of TOML; `name` is where it stands.

    Raises:
        UsageError: it names an unknown feature or value.
    """
    return {feature: _values(feature, value, name) for feature, value in data.items()}


def as_toml(uses: Mapping[str, Collection[Value]]) -> list[str]:
    """The features of an application as `read_uses` reads them, a line each."""
    lines = []
    for name, values in uses.items():
        listed = ", ".join(map(_toml, values))
        lines.append(f"{name} = [{listed}]" if FEATURES[name].several else f"{name} = {listed}")
    return lines


def _values(feature: str, value: Any, name: str) -> tuple[Value, ...]:
    known = FEATURES.get(feature)
    if known is None:
        raise UsageError(f"{name}: there is no feature {feature!r}; choose from {', '.join(FEATURES)}.")
    values = value if isinstance(value, list) and known.several else [value]
    for chosen in values:
        if not any(type(chosen) is type(other) and chosen == other for other in known.values):
            raise UsageError(
                f"{name}: {feature} cannot be {chosen!r}; write {'a list of ' if known.several else ''}"
                f"{' or '.join(map(_toml, known.values))}."
            )
    return tuple(dict.fromkeys(values))


def check_needs(needs: Mapping[str, Any]) -> dict[str, tuple[Value, ...]]:
    """The features that something needs, each with the values that suffice; a single value needs no list.

    Raises:
        ValueError: there is no such feature or value.
    """
    try:
        return {
            name: tuple(made for entry in (value if isinstance(value, list) else [value]) for made in _one(name, entry))
            for name, value in needs.items()
        }
    except UsageError as error:
        raise ValueError(str(error)) from None


def _one(name: str, value: Any) -> tuple[Value, ...]:
    known = FEATURES.get(name)
    return _values(name, [value] if known and known.several else value, "needs")


def template() -> str:
    """The file of an application that uses everything, with what each feature means; its values are to be changed."""
    lines = [
        "# What the application uses of Kafka Streams. What is left out is not known: it may be used, or not.",
        "",
    ]
    for feature in FEATURES.values():
        choices = "" if feature.values == YES_OR_NO else f": {', '.join(map(_toml, feature.values))}"
        lines.append(f"# {feature.sentence}{choices}")
        value = ", ".join(map(_toml, feature.values))
        lines += [f"{feature.name} = [{value}]" if feature.several else f"{feature.name} = {_toml(feature.values[0])}"]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _toml(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'
