"""Onceproof proves or disproves that a Kafka Streams release keeps its promises."""
