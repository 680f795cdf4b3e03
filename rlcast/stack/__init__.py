"""`rlcast up`: the whole service on one machine, as one process tree over one data folder."""
