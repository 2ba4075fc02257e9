"""Campaigns: what is made of many trials, a package each; `verbs` has what commands and DAGs call."""
