"""Installs each package into an empty place, without a network, and uses it. `release/test` is the command line."""
