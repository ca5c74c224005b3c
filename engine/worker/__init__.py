"""A child process that runs what a model's files say, under limits of time and memory."""
