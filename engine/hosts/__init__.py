"""One engine over several processes or Macs: the hosts file, the stages, their start and faults."""
