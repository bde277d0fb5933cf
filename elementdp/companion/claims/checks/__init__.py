"""One module an area of the paper; importing this package registers every check in it."""
