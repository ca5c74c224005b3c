"""Qt signals and callbacks for events of the engine, of worker threads and of other processes."""
