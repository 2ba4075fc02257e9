"""Pure functions from DataFrame to DataFrame. No session, no files, no clock."""
