"""The inference engine: conversations in, text out, nothing read twice. Qt-free; `engine.engine` is the door."""
