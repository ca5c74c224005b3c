"""Adapters that turn engine events, worker results, signals and sockets into Qt signals."""
