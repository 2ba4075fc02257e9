"""The docstring of each DAG is its runbook: it names the tasks, the pool, and the file in which the answer is."""

NAMED = {
    "applications": ("applications", "run_application", "drive", "app.json"),
    "bisect": ("bisect", "drive", "bisect.json"),
    "explore": ("releases", "search", "drive", "exploration.jsonl"),
    "qualify": ("releases", "qualify", "drive", "qualification.json"),
    "regression": ("plan", "drive", "sense", "add_trials", "end_trials", "judge", "publish", "gate", "alert"),
    "release_watch": None,
    "sensitivity": ("releases", "sense", "drive", "sensitivity.json"),
    "weekly": None,
}  # None: its tasks


def test_a_docstring_is_the_runbook(bag):
    missing = [
        (name, word)
        for name, dag in bag.dags.items()
        for word in NAMED[name] or dag.task_ids
        if f"`{word}`" not in dag.doc_md
    ]
    assert missing == []
