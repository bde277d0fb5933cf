"""The companion to the paper: what the book needs and a user of the library does not. Nothing else imports it."""

from elementdp.errors import missing_extra

try:
    import platformdirs as _platformdirs
except ModuleNotFoundError as error:
    raise missing_extra(error, "companion") from error
