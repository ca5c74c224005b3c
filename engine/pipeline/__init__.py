"""One model over several processes: each stage holds the weights and the state of its layers."""
