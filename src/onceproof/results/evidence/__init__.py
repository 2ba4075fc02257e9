"""The evidence of one cell, as an archive that can be attached to a JIRA as it is."""
