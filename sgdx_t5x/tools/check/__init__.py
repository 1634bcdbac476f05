"""Whether an assistant breaks when its tools are reworded: `sgdx tools check`."""
