"""The loss under correlation of a release, from its files."""
