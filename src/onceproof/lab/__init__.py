"""Real processes and real brokers: artifacts, clusters, instances, topics, load, trials."""
