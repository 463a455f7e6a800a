"""Calls the functions of sockets over RDMA one by one, both ends in this process: `rsockets.py PORT`."""

import ctypes
import errno
import os
import select
import socket
import struct
import sys
import threading
import time

PORT = int(sys.argv[1])
RDMACM = ctypes.CDLL("librdmacm.so.1", use_errno=True)
SOL_RDMA, RDMA_SQSIZE, RDMA_IOMAPSIZE = 0x10000, 0, 3
for name in ("rrecv", "rsend", "rread", "rwrite", "rreadv", "rwritev", "rrecvmsg", "rsendmsg", "rrecvfrom", "rsendto"):
    getattr(RDMACM, name).restype = ctypes.c_ssize_t
RDMACM.riomap.restype = ctypes.c_long


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Message(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vectors", ctypes.POINTER(Vector)),
        ("count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class Wanted(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("found", ctypes.c_short)]


def call(name, *arguments):
    """What a function returns, or the name of its error."""
    ctypes.set_errno(0)
    result = getattr(RDMACM, name)(*arguments)
    return errno.errorcode[ctypes.get_errno()] if result == -1 else result


def expect(expected, name, *arguments):
    found = call(name, *arguments)
    assert found == expected, f"{name}{arguments}: {found}, not {expected}"


def address(port, host="127.0.0.1"):
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)


def name_of(function, fd):
    """Port and address of an end."""
    room, length = ctypes.create_string_buffer(128), ctypes.c_uint(128)
    expect(0, function, fd, room, ctypes.byref(length))
    assert length.value == 16 and struct.unpack("=H", room.raw[:2])[0] == socket.AF_INET
    return struct.unpack("!H", room.raw[2:4])[0], socket.inet_ntoa(room.raw[4:8])


def option(fd, level, name, length=4):
    room, size = ctypes.create_string_buffer(length), ctypes.c_uint(length)
    expect(0, "rgetsockopt", fd, level, name, room, ctypes.byref(size))
    return int.from_bytes(room.raw[: min(4, size.value)], sys.byteorder)


def set_option(expected, fd, level, name, value):
    expect(expected, "rsetsockopt", fd, level, name, value, len(value))


def number(value):
    return struct.pack("=i", value)


def read(fd, length, flags=0):
    room = ctypes.create_string_buffer(length)
    got = call("rrecv", fd, room, length, flags)
    return room.raw[:got] if isinstance(got, int) else got


def vectors(buffers):
    return (Vector * len(buffers))(*(Vector(ctypes.addressof(buffer), len(buffer)) for buffer in buffers))


def poll(wanted, timeout_ms):
    all_wanted = (Wanted * len(wanted))(*(Wanted(fd, events, 0) for fd, events in wanted))
    count = call("rpoll", all_wanted, len(wanted), timeout_ms)
    return count, [each.found for each in all_wanted]


def later(function, *arguments):
    """Runs it in a thread; returns what waits for its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*arguments)))
    thread.start()
    time.sleep(0.2)

    def result():
        thread.join()
        return results[0]

    return result


def refused():
    expect("ENOTSUP", "rsocket", socket.AF_INET, socket.SOCK_DGRAM, 0)
    expect("ENOTSUP", "rsocket", socket.AF_UNIX, socket.SOCK_STREAM, 0)
    expect("ENOTSUP", "rsocket", socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_UDP)
    room = ctypes.create_string_buffer(200)
    for name, *arguments in (
        ("rbind", address(1), 16),
        ("rlisten", 1),
        ("raccept", None, None),
        ("rconnect", address(1), 16),
        ("rshutdown", 0),
        ("rclose",),
        ("rrecv", room, 1, 0),
        ("rsend", room, 1, 0),
        ("rgetpeername", room, room),
        ("rfcntl", 3, 0),
    ):
        # This descriptor is the kernel's.
        expect("EBADF", name, 0, *arguments)
    fd = call("rsocket", socket.AF_INET, socket.SOCK_STREAM, 0)
    expect("ENOTCONN", "rsend", fd, room, 1, 0)
    assert read(fd, 1) == "ENOTCONN"
    expect("ENOTCONN", "rgetpeername", fd, room, ctypes.byref(ctypes.c_uint(16)))
    expect("ENOTCONN", "rshutdown", fd, 2)
    expect("EINVAL", "raccept", fd, None, None)
    expect("EINVAL", "rconnect", fd, address(1), 15)
    expect("EAFNOSUPPORT", "rconnect", fd, struct.pack("=H14x", socket.AF_UNIX), 16)
    expect("ENOTSUP", "riomap", fd, room, 10, 2, 0, 0)
    assert name_of("rgetsockname", fd) == (0, "0.0.0.0")
    expect("ECONNREFUSED", "rconnect", fd, address(PORT), 16)
    expect("ECONNREFUSED", "rconnect", fd, address(PORT), 16)
    expect(0, "rclose", fd)
    expect("EBADF", "rclose", fd)


def options(fd):
    assert option(fd, socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    assert option(fd, socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert option(fd, SOL_RDMA, RDMA_SQSIZE) == 384
    set_option(0, fd, socket.SOL_SOCKET, socket.SO_SNDBUF, number(40_000))
    assert option(fd, socket.SOL_SOCKET, socket.SO_SNDBUF) == 80_000
    set_option(0, fd, SOL_RDMA, RDMA_SQSIZE, number(100))
    set_option(0, fd, socket.IPPROTO_TCP, socket.TCP_NODELAY, number(1))
    assert option(fd, socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    set_option("EINVAL", fd, socket.IPPROTO_TCP, socket.TCP_NODELAY, b"")
    set_option("ENOTSUP", fd, socket.SOL_SOCKET, 9_999, number(1))
    expect("ENOTSUP", "rgetsockopt", fd, 77, 1, ctypes.create_string_buffer(4), ctypes.byref(ctypes.c_uint(4)))


def pieces(client, server):
    """Scattered and gathered, looked at first, waited for as a whole."""
    parts = [ctypes.create_string_buffer(part, len(part)) for part in (b"one", b"", b"twothree")]
    assert call("rwritev", client, vectors(parts), 3) == 11
    while (looked := read(server, 100, socket.MSG_PEEK | socket.MSG_DONTWAIT)) == "EAGAIN":
        pass
    assert looked == b"onetwothree"[: len(looked)]
    rooms = [ctypes.create_string_buffer(size) for size in (2, 4, 100)]
    assert call("rreadv", server, vectors(rooms), 3) == 11
    assert [room.raw[:4] for room in rooms] == [b"on", b"etwo", b"thre"]
    message = Message(vectors=vectors(parts), count=3)
    assert call("rsendmsg", server, ctypes.byref(message), 0) == 11
    message = Message(vectors=vectors(rooms), count=3, name_length=9, control_length=9)
    assert call("rrecvmsg", client, ctypes.byref(message), socket.MSG_PEEK) in range(1, 12)
    assert read(client, 11, socket.MSG_WAITALL) == b"onetwothree"
    whole = later(read, client, 6, socket.MSG_WAITALL)
    for part in (b"ab", b"cd", b"ef"):
        assert call("rsend", server, part, 2, 0) == 2
        time.sleep(0.05)
    assert whole() == b"abcdef"
    assert read(client, 1, socket.MSG_DONTWAIT) == "EAGAIN"
    expect("EISCONN", "rsendto", client, b"x", 1, 0, address(1), 16)
    set_option(0, client, socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("=qq", 0, 200_000))
    begin = time.monotonic()
    assert read(client, 1) == "EAGAIN" and time.monotonic() - begin > 0.19
    set_option(0, client, socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("=qq", 0, 0))


def polled(listener, client, server):
    reader, writer = os.pipe()
    both = select.POLLIN | select.POLLOUT
    wanted = [(listener, select.POLLIN), (reader, select.POLLIN), (server, select.POLLIN), (-1, both)]
    assert poll(wanted, 0) == (0, [0, 0, 0, 0])
    begin = time.monotonic()
    assert poll(wanted, 150) == (0, [0, 0, 0, 0]) and time.monotonic() - begin > 0.14
    waiting = later(poll, wanted, 20_000)
    assert call("rsend", client, b"x", 1, 0) == 1
    assert waiting() == (1, [0, 0, select.POLLIN, 0])
    os.write(writer, b"x")
    assert poll(wanted, 20_000) == (2, [0, select.POLLIN, select.POLLIN, 0])
    os.read(reader, 1)
    reads, writes = ctypes.create_string_buffer(128), ctypes.create_string_buffer(128)
    for room, fd in ((reads, reader), (reads, server), (writes, client)):
        room[fd // 8] = room.raw[fd // 8] | 1 << fd % 8
    assert call("rselect", 1_024, reads, writes, None, ctypes.byref((ctypes.c_long * 2)(20, 0))) == 2
    assert reads.raw[server // 8] == 1 << server % 8 and writes.raw[client // 8] == 1 << client % 8
    assert read(server, 9) == b"x"
    # Two threads wait for one socket, one to read and one to write; each is woken by its event.
    reading, data = later(read, client, 5, socket.MSG_WAITALL), bytes(3_000_000)
    writing = later(call, "rsend", client, data, len(data), 0)
    assert call("rsend", server, b"hello", 5, 0) == 5
    assert reading() == b"hello"
    assert read(server, len(data), socket.MSG_WAITALL) == data and writing() == len(data)
    os.close(reader)
    os.close(writer)


def by_epoll(client, server):
    """As `epoll`, which later versions of librspreload.so stand before."""
    layout = "=IQ" if os.uname().machine == "x86_64" else "=I4xQ"
    size = struct.calcsize(layout)
    events = call("repoll_create", 0)

    def control(operation, fd, wanted, data=0):
        return call("repoll_ctl", events, operation, fd, struct.pack(layout, wanted, data))

    def wait(timeout_ms):
        room = ctypes.create_string_buffer(4 * size)
        count = call("repoll_wait", events, room, 4, timeout_ms)
        return [struct.unpack(layout, room.raw[at * size : (at + 1) * size]) for at in range(count)]

    reader, writer = os.pipe()
    add, remove, change = 1, 2, 3
    assert control(add, server, select.EPOLLIN, 1 << 40) == control(add, reader, select.EPOLLIN, 2) == 0
    assert (control(add, server, 1), control(change, writer, 1)) == ("EEXIST", "ENOENT")
    assert control(add, events, 1) == "EINVAL"
    assert wait(0) == [] == wait(50)
    waiting = later(wait, 20_000)
    assert call("rsend", client, b"x", 1, 0) == 1
    assert waiting() == [(select.EPOLLIN, 1 << 40)] == wait(20_000)
    os.write(writer, b"x")
    assert sorted(wait(20_000)) == [(select.EPOLLIN, 2), (select.EPOLLIN, 1 << 40)]
    assert control(remove, reader, 0) == 0 and control(remove, reader, 0) == "ENOENT"
    assert control(change, server, select.EPOLLIN | select.EPOLLONESHOT, 3) == 0
    assert (wait(20_000), wait(0)) == ([(select.EPOLLIN, 3)], [])
    # A change of a set wakes the thread that waits for it.
    waiting = later(wait, 20_000)
    assert control(change, server, select.EPOLLIN | select.EPOLLOUT, 4) == 0
    assert waiting() == [(select.EPOLLIN | select.EPOLLOUT, 4)]
    assert read(server, 9) == b"x"
    expect(0, "rclose", events)
    expect("EBADF", "repoll_wait", events, ctypes.create_string_buffer(99), 4, 0)
    os.close(reader)
    os.close(writer)


def main():
    refused()
    listener = call("rsocket", socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, 0)
    options(listener)
    expect(0, "rbind", listener, address(PORT), 16)
    expect(0, "rlisten", listener, 5)
    expect("EAGAIN", "raccept", listener, None, None)
    assert option(listener, socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    client = call("rsocket", socket.AF_INET, socket.SOCK_STREAM, 0)
    # No connection is accepted yet.
    expect(0, "rconnect", client, address(PORT), 16)
    expect("EISCONN", "rconnect", client, address(PORT), 16)
    assert poll([(listener, select.POLLIN)], 20_000) == (1, [select.POLLIN])
    server = call("raccept", listener, None, None)
    assert server > max(listener, client)
    assert name_of("rgetsockname", server) == name_of("rgetpeername", client) == (PORT, "127.0.0.1")
    assert name_of("rgetpeername", server) == name_of("rgetsockname", client)
    assert option(server, socket.SOL_SOCKET, socket.SO_SNDBUF) == 80_000
    assert option(server, SOL_RDMA, RDMA_SQSIZE) == 100
    assert not call("rfcntl", server, 3, 0) & os.O_NONBLOCK, "as Linux has it"
    set_option("EINVAL", server, SOL_RDMA, RDMA_SQSIZE, number(99))
    pieces(client, server)
    polled(listener, client, server)
    by_epoll(client, server)
    expect(0, "rshutdown", client, 1)
    expect("EPIPE", "rsend", client, b"x", 1, 0)
    assert read(server, 1) == b""
    blocked = later(read, client, 1)
    expect(0, "rclose", client)
    assert blocked() in ("EBADF", b"")
    expect("ECONNRESET", "rsend", server, b"x", 1, 0)
    assert poll([(server, select.POLLIN)], 20_000) == (1, [select.POLLIN | select.POLLHUP])
    expect(0, "rclose", server)
    expect(0, "rclose", listener)
    print("well")


main()
