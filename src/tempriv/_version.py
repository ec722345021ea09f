"""The version, alone, so that packaging reads it without importing anything heavy."""

VERSION = "0.8.0"
