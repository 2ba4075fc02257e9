"""The verbs of the DAG's tasks, and the Airflow that runs them: steps, services, REST client, `onceproof run`."""
