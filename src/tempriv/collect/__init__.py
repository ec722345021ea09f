"""Collecting from devices: a server that asks, devices that answer, and what goes between them."""

from __future__ import annotations

from typing import Any

__all__ = ["Campaign", "Client"]


def __getattr__(name: str) -> Any:
    # the client needs a library for the network, which other parts of tempriv do without
    if name == "Client":
        from tempriv.collect.device.client import Client

        return Client
    if name == "Campaign":
        from tempriv.collect.protocol.campaign import Campaign

        return Campaign
    raise AttributeError(name)
