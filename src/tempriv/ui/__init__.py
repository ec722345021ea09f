"""What the pages of tempriv share: style, form fields, charts, and the plotting library."""

from __future__ import annotations

from pathlib import Path

FILES = Path(__file__).parent
"""The folder that a server mounts as ``/ui``."""
