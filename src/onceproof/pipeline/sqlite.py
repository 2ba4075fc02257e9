"""How Airflow opens its SQLite file; named by `AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS`."""

# Several processes write; on a busy machine one may have to wait longer for its turn than the default of 5 s.
CONNECT_ARGS = {"timeout": 60}
