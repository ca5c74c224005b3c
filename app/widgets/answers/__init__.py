"""The pane that shows several answers to one message side by side, in place of the transcript."""
