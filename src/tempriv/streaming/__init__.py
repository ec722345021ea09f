"""Many interleaved series through one mechanism, for months, across any number of crashes.

A block of readings goes through four steps: read, perturb, commit, hand out. The commit is one
transaction: how far every series has come, how far the input has been read, where the output
stands, and the block's own output. What is handed out has been committed, so after a crash it is
handed out again in its place from the state, with the same bits; nothing is drawn twice.
"""
