"""Where things lie and how much may run at once; every value can be set as `ONCEPROOF_<NAME>`."""

from functools import cache
from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Settings of this installation, from the environment."""

    model_config = SettingsConfigDict(env_prefix="ONCEPROOF_", frozen=True)

    project: Path = Path(__file__).parents[2]
    home: Path = Field(default_factory=lambda data: data["project"] / ".onceproof", validate_default=True)
    database_url: str = Field(default_factory=lambda data: f"sqlite:///{data['home']}/results.db")
    maven: str = "mvn"
    java: str = "java"
    airflow_port: int | None = Field(default=None, ge=1, le=65535)
    drive_slots: int = Field(default=1, ge=1, description="trials driven at once")

    @field_validator("project", "home")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        """Processes run elsewhere, so a path relative to us would mean another place to them."""
        return path.absolute()

    @property
    def runs(self) -> Path:
        """Folder of all run folders."""
        return self.home / "runs"

    @property
    def artifacts(self) -> Path:
        """What was resolved from Maven."""
        return self.home / "artifacts"

    @property
    def application_jar(self) -> Path:
        """The application under test."""
        return self.project / "streams_app" / "target" / "onceproof-streams-app.jar"


@cache
def get_settings() -> Settings:
    """The settings of this process."""
    return Settings()
