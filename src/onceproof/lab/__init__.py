"""Real processes and real brokers: artifacts, clusters, instances, topics, seeding, trials."""
