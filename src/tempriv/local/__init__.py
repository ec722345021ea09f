"""Protocols of local privacy between devices and a server, without a network."""
