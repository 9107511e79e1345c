"""Clients of outside services, behind the Protocols of actors/ports.py."""
