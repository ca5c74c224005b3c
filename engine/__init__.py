"""The inference engine: loads models, answers requests and caches the state of processed tokens.

The package does not depend on Qt. The app creates an `engine.engine.Engine`. Commands and events
are in `engine.events`.
"""
