"""The companion to the paper: what the book needs and a user of the library does not. Nothing else imports it."""
