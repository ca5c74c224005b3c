"""The work on one request: restore, prefill, decode, publish. Also reading ahead."""
