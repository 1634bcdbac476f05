"""Private parts of t5x, see the public modules that use them."""
