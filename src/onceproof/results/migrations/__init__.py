"""Alembic's migrations of the results database; `onceproof.results.database.migrate` runs them."""
