"""Takes out of a text what must not leave the machine: secrets, paths, names of hosts and people."""

import getpass
import json
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onceproof.model.client_properties import host_of
from onceproof.model.errors import HarnessError
from onceproof.model.json_file import read_json
from onceproof.model.run_folder import RunFolder
from onceproof.model.secret import SECRET, SECRET_KEY, WORDS
from onceproof.settings import get_settings

HIDDEN = "***"
# How Kafka prints what is not set, or a secret of its own.
UNSET = r"(?![ \t]*(?:null|\[hidden\]|\*\*\*)[\"']?[ \t\r]*(?:(?m:$)|[,}]))"
VALUE = r"(?P<value>(?:\\\r?\n|[^\n])+)"  # to the end of the line, with the lines that continue it
# In a text nothing marks where a secret ends, so everything after its key is taken.
# Other words stand for something else where they are part of a name, as in `TopicAuthorizationException: `.
WHOLE = r"(?<![a-z])(?:pwd|(?:set-)?cookie|(?:proxy-)?authorization)(?![\w.\-])"
# What follows is bounded, so that a long line without an end of its key takes no time that grows with its square.
REST_OF_KEY = r"[\w.\-]{0,200}+"
# Whether a text without capitals has any of these words, which most have not: looked for ten times as quickly.
MAY_ASSIGN = re.compile("|".join((*WORDS, "pwd", "cookie", "authorization")))
ASSIGNED = re.compile(rf"(?P<key>(?:{SECRET}{REST_OF_KEY}|{WHOLE})[\"']?[ \t]*[=:]){UNSET}{VALUE}", re.IGNORECASE)
BEARER = re.compile(r"(?P<key>\bBearer\s+)[\w.~+/\-]{8,}=*", re.IGNORECASE)
# A key or a certificate, on lines of its own or in a string; of one that is cut, what is there.
PEM = re.compile(
    r"-----BEGIN (?P<what>[A-Z0-9 ]{1,60})-----(?:(?:[^-]|-(?!----))*+-----END (?P=what)-----|(?:\\[nr]|[\w+/=\s])*)"
)
WEBHOOK = re.compile(r"https?://[^\s\"'<>]{0,500}?hook[^\s\"'<>]*", re.IGNORECASE)
# Certainly an assignment, not prose with a colon: its value is looked for everywhere else, too.
LEARNED = re.compile(
    rf"(?:^|(?<=\s))[\w.\-]{{0,200}}{SECRET}{REST_OF_KEY}[ \t]*={UNSET}{VALUE}", re.IGNORECASE | re.MULTILINE
)
OPTION = re.compile(r"=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"';,]+))")  # of a JAAS entry
USER_OF_URL = re.compile(r"(?<=://)[^\s/@\"']+(?=@)")
# The first of its names stands after nothing that could belong to a path; two names at least, to spare `/10.1.2.3`.
PATH = re.compile(r"(?:(?<=file://)|(?<![\w.\-/\]@~]))/(?:[\w.+@%~=\-]+/)+[\w.+@%~=\-]*")
TAIL = r"(?P<tail>(?:/[^\s\"'<>|,;:()\[\]{}]*)?)"
# Not loopback, not 0.0.0.0, and not a version such as 0.10.2.1.
ADDRESS = re.compile(
    r"(?<![\w.])(?!127\.|0\.)(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]*\w)"
)
# A broker as Kafka's clients write it: `host:9092 (id: 1 rack: null)`, `host/10.1.2.3:9092`; it may be new to us.
NODE = re.compile(
    r"(?<![\w.\-\]])(?!localhost\b|127\.|0\.)[\w.\-]+"
    r"(?=:\d+ \(id: |/(?:(?:\d+\.){3}\d+|<unresolved>):\d|/\[?(?:[0-9a-fA-F]{0,4}:){2,})"
)
# What may be an IPv6 address, with the port that Java puts behind it without brackets; `_without_ipv6` looks closer.
IPV6 = re.compile(
    r"(?<![\w:.])(?P<address>[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,8}(?:(?:\.\d{1,3}){3})?)(?:%[\w.\-]+)?(?!\w|\.\d)"
)
# As names of machines, accounts or secrets these reveal nothing, and the files are full of them.
COMMON = {"root", "localhost", "kafka", "streams", "onceproof", "true", "false", "null", "none", "required"}


class Redaction:
    """Replaces what is known to be revealing, and what looks like it.

    Paths under the run folder and the project keep their end (`[run]/trials/...`), which shows what they are; all other
    absolute paths become `[path]`. A secret is recognised by its key, and is then replaced wherever else it appears.
    """

    def __init__(self, kept: Mapping[Path, str], other: set[Path], hosts: set[str], users: set[str]) -> None:
        """Know a machine.

        Args:
            kept: folders of which the end of a path may be shown, with what stands for them.
            other: folders that may stand in a text, of which nothing is shown.
            hosts: names of machines.
            users: names of accounts.
        """
        self._roots: dict[str, tuple[str, bool]] = {}  # spelling -> what stands for it, and whether the tail stays
        for folder in sorted(other):
            self._add_root(folder, "[path]", False)
        for folder, label in kept.items():
            self._add_root(folder, label, True)
        spelled = "|".join(re.escape(root) for root in sorted(self._roots, key=len, reverse=True))
        self._root = re.compile(rf"(?P<root>{spelled})(?![\w\-]){TAIL}") if spelled else None
        self._host = _name(hosts, r"(?:\.[\w\-]+)*")
        self._user = _name(users, "")
        self._secrets: set[str] = set()
        self._secret: re.Pattern[str] | None = None

    @classmethod
    def of(cls, run: RunFolder) -> "Redaction":
        """A redaction that knows the names of this machine, of these settings, and of the machine of the run."""
        settings = get_settings()
        java = shutil.which(settings.java)
        other = {Path.home(), Path(tempfile.gettempdir())}
        other |= {Path(os.environ[name]) for name in ("HOME", "JAVA_HOME", "TMPDIR") if os.environ.get(name)}
        if java is not None:
            other |= {Path(java).absolute().parents[1], Path(java).resolve().parents[1]}
        kept = {settings.project: "[project]", settings.home: "[home]"}
        hosts = {socket.gethostname(), os.environ.get("HOSTNAME", "")}
        for cluster in _read(run, "clusters/*.json"):
            if cluster.get("folder"):  # the run may have been copied from elsewhere
                made_in = Path(cluster["folder"]).parents[1]
                kept |= {made_in.parents[1]: "[home]", made_in: "[run]"}
            hosts.add(str(cluster.get("host", "")))
            for server in str(cluster.get("bootstrap_servers", "")).split(","):
                hosts.add(host_of(server))
        for plan in _read(run, "trials/*/trial.json"):
            hosts |= set(map(str, plan.get("broker_hosts", ())))
        hosts |= {str(outcome.get("host", "")) for outcome in _read(run, "trials/*/outcome.json")}
        kept[run.path] = "[run]"
        return cls(kept, other, {*hosts, *(host.partition(".")[0] for host in hosts)}, set(_users()))

    def _add_root(self, folder: Path, label: str, keeps_tail: bool) -> None:
        for path in {folder.absolute(), folder.resolve()}:
            if len(path.parts) > 1:  # `/` would be every path
                for spelling in _spellings(str(path)):
                    self._roots[spelling] = (label, keeps_tail)

    def learn(self, data: Any) -> None:
        """Remember the secrets in a text, or in what JSON holds, to recognise them anywhere."""
        known = len(self._secrets)
        self._secrets.update(spelling for secret in _secrets(data) for spelling in _spellings(secret))
        if len(self._secrets) > known:
            self._secret = None

    def _any_secret(self) -> re.Pattern[str] | None:
        if self._secret is None and self._secrets:
            longest_first = sorted(self._secrets, key=lambda secret: (-len(secret), secret))
            self._secret = re.compile("|".join(map(re.escape, longest_first)))
        return self._secret

    def text(self, text: str) -> str:
        """The text without it."""
        text = PEM.sub(HIDDEN, text)
        if secret := self._any_secret():
            text = secret.sub(HIDDEN, text)
        small = text.casefold()
        if "bearer" in small:
            text = BEARER.sub(lambda found: f"{found['key']}{HIDDEN}", text)
        text = WEBHOOK.sub("[webhook]", text)
        if MAY_ASSIGN.search(small):
            text = ASSIGNED.sub(lambda found: f"{found['key']}{HIDDEN}", text)
        text = USER_OF_URL.sub(HIDDEN, text)
        text = IPV6.sub(_without_ipv6, NODE.sub("[host]", text))
        if self._root:
            text = self._root.sub(self._without_root, text)
        text = ADDRESS.sub("[host]", PATH.sub("[path]", text))
        if self._host:
            text = self._host.sub("[host]", text)
        if self._user:
            text = self._user.sub("[user]", text)
        return text

    def _without_root(self, found: re.Match[str]) -> str:
        label, keeps_tail = self._roots[found["root"]]
        return f"{label}{found['tail']}" if keeps_tail else label

    def data(self, data: Any) -> Any:
        """The JSON value, without it."""
        if isinstance(data, dict):
            return {
                self.text(key): HIDDEN if SECRET_KEY.search(key) and value is not None else self.data(value)
                for key, value in data.items()
            }
        if isinstance(data, list):
            return [self.data(value) for value in data]
        return self.text(data) if isinstance(data, str) else data


def _without_ipv6(found: re.Match[str]) -> str:
    """A mark in place of an address of IPv6; a time, a loopback address or a name of C++ stays."""
    text = found["address"]
    for address, rest in ((text, ""), (text.rpartition(":")[0], f":{text.rpartition(':')[2]}")):
        with suppress(ValueError):
            parsed = IPv6Address(address)
            is_telling = any(map(str.isdigit, address)) and not parsed.is_loopback and not parsed.is_unspecified
            return f"[host]{rest}" if is_telling else found[0]
    return found[0]


def _read(run: RunFolder, pattern: str) -> Iterator[Mapping[str, Any]]:
    for file in sorted(run.path.glob(pattern)):
        try:
            yield read_json(file)
        except HarnessError:  # a damaged one names no host that we could look for
            continue


def _users() -> Iterator[str]:
    try:
        yield getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as containers have them
        return


def _name(names: set[str], tail: str) -> re.Pattern[str] | None:
    """Any of the names as a word of its own; an underscore does not belong to it."""
    telling = {name for name in names if len(name) > 1 and not name[0].isspace() and name.lower() not in COMMON}
    telling = {name for name in telling if not re.fullmatch(r"[\d.]+", name)}  # addresses have their own rule
    spelled = "|".join(re.escape(name) for name in sorted(telling, key=lambda name: (-len(name), name)))
    return re.compile(rf"(?<![^\W_])(?:{spelled}){tail}(?![^\W_])", re.IGNORECASE) if spelled else None


def _spellings(text: str) -> set[str]:
    """As it is, as JSON writes it, and as a URL does."""
    return {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], quote(text)}


def _secrets(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            if SECRET_KEY.search(key) and isinstance(value, str):
                yield from _telling(value)
            else:
                yield from _secrets(value)
    elif isinstance(data, list):
        for value in data:
            yield from _secrets(value)
    elif isinstance(data, str) and MAY_ASSIGN.search(data.casefold()):
        for found in LEARNED.finditer(data):
            yield from _telling(found["value"])


def _telling(value: str) -> Iterator[str]:
    """The value and, of a JAAS entry, those of its options; nothing that also stands for something else."""
    options = (next(filter(None, found), "") for found in OPTION.findall(value))
    for secret in (value.strip(), value.strip().strip("\"'"), *options):
        short = len(secret) < 4 or (secret.isdigit() and len(secret) < 8)
        if not short and secret.lower() not in COMMON and secret not in ("[hidden]", HIDDEN):
            yield secret
