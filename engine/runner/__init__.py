"""One request on the device: prefill, decode, draw."""
