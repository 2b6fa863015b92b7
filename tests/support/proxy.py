"""A TCP proxy that cuts, stalls or slows real connections, on command or after so many bytes.

    with Proxy(server.port) as proxy:
        … connect to proxy.port …
        proxy.cut_after(100000)     the connection that next has brought so many bytes from the server
        proxy.cut()                 every connection, now, with a reset
        proxy.stall(); proxy.go_on()
        proxy.slow(200000)          bytes a second from the server, all connections together; None: full
        proxy.refuse(); proxy.accept()

What is not forwarded waits in the kernel's buffers, so that the server feels it as well.
"""

import selectors
import socket
import struct
import threading
import time

PIECE = 16384


class Link:
    """One connection of a client, and the one to the server that it goes on to."""

    def __init__(self, client, server):
        self.client = client
        self.server = server
        self.received = 0    # bytes from the server that were forwarded

    def cut(self):
        """Both sides see a reset, as if a machine between them had died and come back."""
        for one in (self.client, self.server):
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
            one.close()


class Proxy:
    """One thread serves all connections; what is asked for takes effect within some milliseconds."""

    def __init__(self, port, host="127.0.0.1"):
        self._target = (host, port)
        self._listener = socket.create_server((host, 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._lock = threading.RLock()
        self._links = []
        self._cut_after = None
        self._rate = None
        self._allowed_at = 0.0   # when the next piece from the server may go on
        self._stalled = False
        self._refusing = False
        self._ended = False
        self.cuts = 0            # connections that were cut
        self.accepted = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- commands

    def cut(self):
        with self._lock:
            for link in list(self._links):
                self._drop(link)

    def cut_after(self, size):
        """Cuts the first connection that brings `size` more bytes from the server, once."""
        with self._lock:
            for link in self._links:
                link.received = 0
            self._cut_after = size

    def stall(self):
        self._stalled = True

    def go_on(self):
        self._stalled = False

    def slow(self, bytes_per_second):
        self._rate = bytes_per_second

    def refuse(self):
        self._refusing = True
        self.cut()

    def accept(self):
        self._refusing = False

    def close(self):
        self._ended = True
        self._thread.join(10)
        self.cut()
        self._listener.close()

    # -- the thread

    def _serve(self):
        while not self._ended:
            with self._lock:
                links = list(self._links)
            with selectors.DefaultSelector() as selector:
                selector.register(self._listener, selectors.EVENT_READ, None)
                if not self._stalled:
                    self._register(selector, links)
                for key, _ in selector.select(0.02):
                    self._ready(key)

    def _register(self, selector, links):
        may_bring = time.monotonic() >= self._allowed_at
        for link in links:
            try:
                selector.register(link.client, selectors.EVENT_READ, (link, False))
                if may_bring:
                    selector.register(link.server, selectors.EVENT_READ, (link, True))
            except (ValueError, KeyError):
                pass  # cut meanwhile

    def _ready(self, key):
        if key.data is None:
            self._accept()
            return
        link, from_server = key.data
        with self._lock:
            if link in self._links:
                self._forward(link, from_server)

    def _accept(self):
        client, _ = self._listener.accept()
        try:
            if self._refusing:
                raise OSError("refusing")
            server = socket.create_connection(self._target, 10)
        except OSError:
            client.close()
            return
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._links.append(Link(client, server))
            self.accepted += 1

    def _forward(self, link, from_server):
        source, target = (link.server, link.client) if from_server else (link.client, link.server)
        if from_server and time.monotonic() < self._allowed_at:
            return
        try:
            data = source.recv(self._piece(link, from_server))
            if data:
                target.settimeout(30)
                target.sendall(data)
        except OSError:
            data = b""
        if not data:
            self._drop(link, clean=True)
        elif from_server:
            self._count(link, len(data))

    def _piece(self, link, from_server):
        size = PIECE
        if from_server and self._rate:
            size = max(min(size, self._rate // 50), 1)
        if from_server and self._cut_after is not None:
            size = max(min(size, self._cut_after - link.received), 1)
        return size

    def _count(self, link, size):
        link.received += size
        if self._rate:
            now = time.monotonic()
            self._allowed_at = max(self._allowed_at, now) + size / self._rate
        if self._cut_after is not None and link.received >= self._cut_after:
            self._cut_after = None
            self._drop(link)

    def _drop(self, link, clean=False):
        self._links.remove(link)
        if clean:
            link.client.close()
            link.server.close()
        else:
            self.cuts += 1
            link.cut()
