"""The judges that the benchmark compares: this package's prover and its peers."""
