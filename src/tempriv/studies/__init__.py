"""One file a paper: its numbers again, ours beside them."""
