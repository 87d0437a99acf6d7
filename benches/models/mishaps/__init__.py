"""A shop whose tools fail at awkward moments, with tasks in which each effect must be made exactly once."""
