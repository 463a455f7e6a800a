"""A program that writes nonsense where it may write: requests, rings, doorbell. Argument: the control socket."""

import mmap
import os
import random
import socket
import struct
import sys

HELLO = int.from_bytes(b"SVEQDS\x00\x01", "big")
random.seed(7)


def connect():
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(5)
    connection.connect(sys.argv[1] + ".native")
    return connection


def request(*words):
    return struct.pack("<8Q", *(list(words) + [0] * (8 - len(words))))


def opened(port):
    connection = connect()
    connection.send(request(HELLO, 0))
    _, fds, _, _ = socket.recv_fds(connection, 16, 8)
    assert len(fds) == 5, fds
    connection.send(request(1, 1, port))
    answer = connection.recv(8192)
    return connection, fds, struct.unpack("<%dQ" % (len(answer) // 8), answer)


# Requests that no program makes.
for garbage in [b"", b"x", b"\0" * 63, b"\0" * 64, b"\xff" * 64, os.urandom(65), request(HELLO + 1), os.urandom(9000)]:
    connection = connect()
    connection.send(garbage)
    connection.close()
for words in [(9, 1), (0, 0), (HELLO, 1)]:
    connection, fds, _ = opened(0)
    connection.send(request(*words))
    assert connection.recv(100) == b"", "the daemon ends the connection"
    for fd in fds:
        os.close(fd)

# The memory cannot be cut off under the daemon.
connection, fds, answer = opened(0)
for size in [0, os.fstat(fds[0]).st_size * 2]:
    try:
        os.ftruncate(fds[0], size)
        sys.exit("the memory has another size now")
    except PermissionError:
        pass
# A second port is refused, and so is a port of another program.
connection.send(request(1, 5, 0))
assert struct.unpack("<2Q", connection.recv(8192))[0] == 22
other, other_fds, taken = opened(answer[2])
assert taken == (98, 1), taken

# Nonsense in the rings, while messages come and go.
for turn in range(150):
    connection, fds, _ = opened(0)
    memory = mmap.mmap(fds[0], 0)
    for _ in range(60):
        at = 8 * random.choice([0, 1, 8, 16, 17, 24] + [random.randrange(len(memory) // 8) for _ in range(6)])
        value = random.choice([0, 1, 2, 31, 1024, 1025, 1 << 20, (1 << 20) + 1, 1 << 32, (1 << 64) - 1, random.getrandbits(64)])
        memory[at : at + 8] = struct.pack("<Q", value)
        if random.random() < 0.3:
            try:
                os.write(fds[1], struct.pack("<Q", 1))
            except BlockingIOError:
                pass
    if turn % 3 == 0:
        # One message whose descriptor is right but for its length.
        memory[0:8] = struct.pack("<Q", 1)
        memory[256 : 256 + 64] = struct.pack("<8Q", random.choice([5, 1 << 20, 1 << 21]), 0, 1, 0, 0, 0, 0, 0)
        os.write(fds[1], struct.pack("<Q", 1))
    if turn % 2 == 0:
        # Files that the daemon writes to must not block it.
        for fd in fds[2:]:
            os.set_blocking(fd, True)
        os.set_blocking(fds[1], True)
    memory.close()
    connection.close()
    for fd in fds:
        os.close(fd)

# More programs than the daemon takes.
many = []
for _ in range(200):
    try:
        many.append(opened(0))
    except (OSError, AssertionError, struct.error):
        pass
assert 64 < len(many) <= 128, len(many)
print("well")
