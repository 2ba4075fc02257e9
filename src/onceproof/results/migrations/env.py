"""The entry point of Alembic: the migrations, on the connection that it was given."""

from alembic import context

from onceproof.results.database import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite cannot alter a table in place
)
with context.begin_transaction():
    context.run_migrations()
