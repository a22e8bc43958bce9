"""Connect to a phone over ADB. The only package that knows ADB.

adbutils frames the messages; the clock is ours: its `timeout` bounds one read, while a call here has one deadline for
everything from connecting to the last byte. It also never starts a server: whoever owns the port does that.
"""

from .connection import FOLDER, MAX_OUTPUT_BYTES, AdbConnection
from .server import AdbServer, ListedDevice, parse_devices, server_of
