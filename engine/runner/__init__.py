"""The steps of one request (restore, prefill, decode, publish), and reading ahead when idle."""
