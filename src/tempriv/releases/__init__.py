"""From a table through a mechanism to a release: run, write, describe, verify, post-process."""
