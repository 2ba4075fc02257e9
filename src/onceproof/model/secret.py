"""The keys that name secrets, in a configuration, a log, a timeline or an environment."""

import re

WORDS = (
    r"passw(?:or)?d",
    "passphrase",
    "secret",
    "token",
    "jaas",
    "credential",
    r"(?:api|access|private|keystore)[_.\-]?key(?![a-z])",
    r"user[_.]info",  # `basic.auth.user.info` of a schema registry
)
SECRET = rf"(?:{'|'.join(WORDS)})"  # what the keys of secrets are called
SECRET_KEY = re.compile(SECRET, re.IGNORECASE)
