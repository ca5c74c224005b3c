"""The steps of one request: restore, prefill, decode, publish. Also reading ahead in idle time."""
