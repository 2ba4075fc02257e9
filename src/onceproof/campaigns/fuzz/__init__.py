"""The fast lane: topologies that are drawn, run without brokers, and judged by what their operations mean."""
