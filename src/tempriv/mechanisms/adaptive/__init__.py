"""Mechanisms that adapt to the stream: FAST, PeGaSus, pattern sampling."""
