"""The command line: one file a command, named like it."""
