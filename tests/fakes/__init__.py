"""A world without brokers and processes: a simulated group of Kafka Streams instances on a fake clock.

`clock` is time that passes only when somebody waits. `group` is what passes with it: threads with their tasks, topics
that grow, commits; in counts, not in records. `instance` speaks the application's protocol for it
(`streams_app/README.md`). `world` plugs all of it into the real driver, so that what is tested is the scenario and the
driver, both unchanged. `Nature` says what this Kafka does: a test changes one trait and looks at what is concluded.
"""
