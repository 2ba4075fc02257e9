"""Where things are and how much may run at once; every value can be set as `ONCEPROOF_<NAME>`.

In a container a value may also come from a secret, the file `/run/secrets/onceproof_<name>`.
"""

from functools import cache
from pathlib import Path

from platformdirs import user_data_path
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from onceproof.installation import INSTALLED, MAVEN, PROJECT, Installation
from onceproof.model.cell import MARK, refuse_prefix
from onceproof.model.errors import UsageError

SECRETS = Path("/run/secrets")  # where containers find theirs


def _home_of(project: Path) -> Path:
    return user_data_path("onceproof") if project == INSTALLED else project / ".onceproof"


class Settings(BaseSettings):
    """Settings of this installation, from the environment."""

    model_config = SettingsConfigDict(
        env_prefix="ONCEPROOF_", env_ignore_empty=True, frozen=True, secrets_dir=SECRETS if SECRETS.is_dir() else None
    )

    project: Path = Field(
        default_factory=lambda: PROJECT,
        description="folder of jars, Spark jobs, suites and DAGs, by default the checkout, or a part of what is "
        "installed",
    )
    home: Path = Field(
        default_factory=lambda data: _home_of(data["project"]),
        validate_default=True,
        description="runs, artifacts, results database and Airflow's home, by default `.onceproof` in the checkout; "
        "without a checkout the user's data folder, on Linux `~/.local/share/onceproof`",
    )
    applications: Path = Field(
        default_factory=lambda data: data["home"] / "applications",
        validate_default=True,
        description="folder of the applications that DAG `applications` runs, by default `applications` in "
        "`ONCEPROOF_HOME`",
    )
    application_service: Path | None = Field(
        default=None,
        description="socket of the service that runs the applications of DAG `applications`, by default none: they run "
        "as the user of Airflow",
    )
    identity: Path = Field(
        default_factory=lambda data: data["home"] / "installation",
        validate_default=True,
        description="file with the id of this installation, which is made at its first run, by default `installation` "
        "in `ONCEPROOF_HOME`",
    )
    database_url: str = Field(
        default_factory=lambda data: f"sqlite:///{data['home']}/results.db",
        description="results database, any URL of SQLAlchemy, by default SQLite in `ONCEPROOF_HOME`",
    )
    maven: str = Field(
        default=MAVEN, description="command of Maven; where there is no `mvn`, a resolver of Onceproof takes its place"
    )
    java: str = Field(
        default="java", description="command of Java for brokers and instances; each instance attests which Java it is"
    )
    jvms: Path = Field(
        default=Path("/usr/lib/jvm"),
        description="folder of JDKs, among which the parameter `java` and the variants `JAVA_21` and `JAVA_25` find "
        "theirs; brokers stay on `ONCEPROOF_JAVA`",
    )
    toxiproxy: str = Field(default="toxiproxy-server", description="command that the fault `partition` needs")
    airflow_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="port of Airflow's pages; without it a free one, which is remembered",
    )
    drive_slots: int = Field(
        default=2,
        ge=1,
        description="trials driven at once (the pool `drive`, when Airflow first creates it), which suits two cores; "
        "trials that mostly wait are driven in parallel to them",
    )
    lab_executor: str | None = Field(
        default=None,
        description="executor of Airflow, besides its own, for the tasks in queue `lab`, which drive trials; "
        "`CeleryExecutor` gives them to workers",
    )
    spark_master: str = Field(
        default="local[*]",
        description="Spark master of the connection `spark_default`; if this is not set, a connection that exists is "
        "left alone",
    )
    host: str = Field(
        default="127.0.0.1",
        description="name of this machine by which workers and executors reach it; brokers of runs and Spark's driver "
        "listen there",
    )
    prefix: str = Field(
        default=MARK,
        description="with a dot behind it, the beginning of all names on brokers of your own, as `onceproof.team-a`, "
        "so that rights can part teams; a sweep touches only names with its own (docs/brokers.md)",
    )
    pre_releases: bool = Field(default=False, description="whether `release_watch` also takes candidates")
    least_free: float = Field(
        default=2.0,
        ge=0,
        description="GiB that must be free on the disk of `ONCEPROOF_HOME` for a run to begin; brokers and databases "
        "on that disk stop when it is full; 0 asks for none",
    )
    keep_runs: int | None = Field(
        default=None,
        ge=1,
        description="DAG `weekly` removes folders of runs and searches that are older than so many newer ones of their "
        "kind, as `onceproof system prune` does; by default none",
    )
    atlas: Path | None = Field(
        default=None, description="atlas to which the DAG `regression` adds the verdicts of each run, by default none"
    )

    @field_validator("project", "home", "applications", "identity")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        """Processes run elsewhere, so a relative path would mean another place to them."""
        if set(str(path)) & set(":,"):
            raise ValueError("a path with ':' or ',' cannot be given to Java, choose another")
        return path.absolute()

    @field_validator("prefix")
    @classmethod
    def _check_prefix(cls, prefix: str) -> str:
        if reason := refuse_prefix(prefix):
            raise ValueError(reason)
        return prefix

    @field_validator("application_service", "atlas")
    @classmethod
    def _absolute_or_none(cls, path: Path | None) -> Path | None:
        return path and path.absolute()

    @property
    def runs(self) -> Path:
        """Folder of all run folders."""
        return self.home / "runs"

    @property
    def fuzzings(self) -> Path:
        """The folder of what `fuzz` found."""
        return self.home / "fuzzings"

    @property
    def explorations(self) -> Path:
        """Folder of all searches."""
        return self.home / "explorations"

    @property
    def qualifications(self) -> Path:
        """Folder of what qualified releases showed, and others."""
        return self.home / "qualifications"

    @property
    def evidence(self) -> Path:
        """The evidence of runs whose folders were pruned; in containers only the folder of runs is a volume."""
        return self.runs / "evidence"

    @property
    def nights(self) -> Path:
        """The record of the nights of this checkout."""
        return self.home / "nights.jsonl"

    @property
    def artifacts(self) -> Path:
        """The artifacts resolved from Maven."""
        return self.home / "artifacts"

    @property
    def installation(self) -> Installation:
        """The commands and artifacts of the lab."""
        return Installation(
            java=self.java,
            jvms=self.jvms,
            maven=self.maven,
            toxiproxy=self.toxiproxy,
            artifacts=self.artifacts,
            host=self.host,
            application_jar=self.project / "streams_app" / "target" / "onceproof-streams-app.jar",
            agent_jar=self.project / "streams_agent" / "target" / "onceproof-streams-agent.jar",
            resolver_jar=self.project / "resolver" / "target" / "onceproof-resolver.jar",
            prefix=self.prefix,
        )


@cache
def get_settings() -> Settings:
    """The settings of this process.

    Raises:
        UsageError: a variable has an impossible value; names both.
    """
    try:
        return Settings()
    except ValidationError as error:
        wrong = error.errors()[0]
        raise UsageError(f"ONCEPROOF_{str(wrong['loc'][0]).upper()}={wrong['input']}: {wrong['msg']}.") from None
