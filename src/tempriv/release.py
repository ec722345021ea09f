"""Moved."""

from tempriv.releases import *  # noqa
from tempriv.releases import sidecar_of, write_durably, private_file  # noqa
