"""The companion's commands: the book, the ledger and the data. ``elementdp.cli`` loads them when they are called."""
