"""Where a server listens, and which requests are meant for it.

A page from elsewhere can make a browser send requests to this machine. Its Origin gives it away. It can also have its
own name resolve to this machine (DNS rebinding), so that it counts as the same origin. Then the Host header gives it
away.
"""

import errno
import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.errors import InputError

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_OTHER_HOSTS = "leave --host out so that only this machine reaches the server, or give 0.0.0.0 for all its addresses"
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::([0-9]{1,5}))?")


@dataclass(frozen=True)
class Address:
    """The host as the user named it, and the port."""

    host: str
    port: int

    @property
    def url(self) -> str:
        host = self.host
        if self._is_every_address:
            host = "::1" if ":" in host else "127.0.0.1"
        return f"http://{_bracketed(host)}:{self.port}"

    def refusal(self, hosts: Sequence[str], origins: Sequence[str]) -> str:
        """Why a request with these headers is not meant for this server; empty if it is."""
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return f"the Host header is {_said(hosts)}; this server is {self.url}"
        if not all(origin.startswith("http://") and self._is_ours(origin[7:]) for origin in origins):
            return f"the request comes from {_said(origins)}; pages from elsewhere may not use this server"
        return ""

    def _is_ours(self, authority: str) -> bool:
        found = _AUTHORITY.fullmatch(authority.lower())
        if found is None or int(found[2] or 80) != self.port:
            return False
        if found[1] in (*_LOOPBACK, _bracketed(self.host)):
            return True
        # Whoever listens everywhere is called by many addresses, but rebinding needs a name.
        return self._is_every_address and _ip(found[1].strip("[]")) is not None

    @property
    def _is_every_address(self) -> bool:
        address = _ip(self.host)
        return address is not None and address.is_unspecified


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any free one."""
    try:
        family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise InputError(
            f"--host {host!r} is not an address of this machine, nor a name of it; {_OTHER_HOSTS}"
        ) from None
    try:
        return socket.create_server(where, family=family)
    except OSError as error:
        raise InputError(_why_not(host, port, error)) from None


def is_local(listening: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use; give another port, or --port 0 for a free one"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} needs special rights; give a port of 1024 or more, or --port 0 for a free one"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host!r} is not an address of this machine; {_OTHER_HOSTS}"
    return f"nothing can listen at port {port} of {host} ({error.strerror})"


def _bracketed(host: str) -> str:
    return f"[{host.lower()}]" if ":" in host else host.lower()


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _said(values: Sequence[str]) -> str:
    return ", ".join(map(repr, values)) or "missing"
