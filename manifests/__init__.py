"""Is this control-plane node right? Reads a node's files into one immutable picture and judges it."""
