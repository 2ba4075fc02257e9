"""The results page, for an Airflow that runs from a checkout in which the package is not installed."""

from onceproof.airflow.plugin import OnceproofPage

__all__ = ["OnceproofPage"]
