"""What the DAG's tasks call, and the Airflow that runs them: steps, services, REST client, `onceproof run`."""
