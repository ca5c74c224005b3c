"""Adapters that turn engine events, worker results and requests of other processes into signals."""
