"""The keys that name secrets, in a configuration, a log, a timeline or an environment."""

import re

SECRET = r"(?:password|secret|token|jaas|credential)"  # noqa: S105 - what the keys of secrets are called
SECRET_KEY = re.compile(SECRET, re.IGNORECASE)
