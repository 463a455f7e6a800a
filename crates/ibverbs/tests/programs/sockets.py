"""Two programs with sockets that know what the other sends: `sockets.py KIND server|client ADDRESS PORT`."""

import errno
import hashlib
import os
import random
import select
import signal
import socket
import sys
import threading
import time

KIND, ROLE, ADDRESS, PORT = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
FAMILY = socket.AF_INET6 if ":" in ADDRESS else socket.AF_INET
BULK = 20_000_000
PATIENCE_S = 60
CROWD = 12


def data(seed, length=BULK):
    return random.Random(seed).randbytes(length)


def send_all(connection, seed, length=BULK):
    connection.sendall(data(seed, length))


def check(connection, seed, length=BULK):
    """Reads to the end, in pieces of many sizes."""
    sizes, digest, got = random.Random(seed + 100), hashlib.sha256(), 0
    while part := connection.recv(sizes.choice((1, 100, 5_000, 70_000, 1_000_000))):
        digest.update(part)
        got += len(part)
    expected = data(seed, length)
    assert (got, digest.digest()) == (length, hashlib.sha256(expected).digest()), f"{got} of {length} bytes"


def exactly(connection, length):
    parts = []
    while length > 0:
        part = connection.recv(length)
        assert part, "the end comes too early"
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def both_ways(connection, own, other):
    """A thread writes while this one reads."""
    writer = threading.Thread(target=lambda: (send_all(connection, own), connection.shutdown(socket.SHUT_WR)))
    writer.start()
    check(connection, other)
    writer.join()


def small(connection, own, other, count=20_000):
    """Messages of few bytes, all sent before any is read, and each answered by one."""
    def messages(seed):
        sizes = random.Random(seed)
        return [sizes.randbytes(sizes.randint(1, 60)) for _ in range(count)]

    writer = threading.Thread(target=lambda: [connection.sendall(message) for message in messages(own)])
    writer.start()
    assert all(exactly(connection, len(message)) == message for message in messages(other)), "a message"
    writer.join()


def polled(connection, own, other):
    """Never blocks: waits for what can be done, and for a pipe that has nothing to do with it."""
    connection.setblocking(False)
    if ROLE == "client":
        try:
            connection.recv(1)
        except BlockingIOError:
            pass
        else:
            raise AssertionError("there was something to read")
        connection.sendall(b"go")
    else:
        select.select([connection], [], [], PATIENCE_S)
        assert exactly(connection, 2) == b"go"
    reader, writer = os.pipe()
    os.write(writer, b"x")
    poll = select.poll()
    poll.register(connection, select.POLLIN | select.POLLOUT)
    poll.register(reader, select.POLLIN)
    left, digest, got, pipes, waits = memoryview(data(own)), hashlib.sha256(), 0, 0, 0
    while got < BULK or left:
        for descriptor, events in poll.poll(PATIENCE_S * 1_000):
            if descriptor == reader:
                os.read(reader, 1)
                pipes += 1
                continue
            assert not events & (select.POLLERR | select.POLLNVAL), events
            if events & select.POLLIN and got < BULK:
                part = connection.recv(100_000)
                assert part, f"the end comes after {got} bytes"
                digest.update(part)
                got += len(part)
            if events & select.POLLOUT and left:
                try:
                    left = left[connection.send(left):]
                except BlockingIOError:
                    waits += 1
                if not left:
                    poll.modify(connection, select.POLLIN)
    assert digest.digest() == hashlib.sha256(data(other)).digest() and pipes == 1
    # Neither side ends before the other has checked.
    connection.setblocking(True)
    connection.sendall(b"y")
    assert exactly(connection, 1) == b"y"


def timed(connection, own):
    """One waits for an answer with a limit; the other says nothing for longer than that."""
    if ROLE == "server":
        exactly(connection, 1)
    else:
        connection.settimeout(0.3)
        begin = time.monotonic()
        try:
            connection.recv(1)
        except TimeoutError:
            pass
        else:
            raise AssertionError("there was nothing to read")
        assert 0.25 < time.monotonic() - begin < PATIENCE_S
        connection.sendall(b"x")


def accepted(listener):
    connection, peer = listener.accept()
    assert peer[:2] == connection.getpeername()[:2] and connection.getsockname()[1] == PORT
    return connection


def listen():
    listener = socket.socket(FAMILY)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((ADDRESS, PORT))
    listener.listen(8)
    return listener


def connect():
    return socket.create_connection((ADDRESS, PORT))


def is_tcp():
    """Whether the kernel has a TCP socket of this port: sockets over RDMA have none."""
    lines = [line for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}")]
    return any(f":{PORT:04X} " in line for line in lines)


def outcome(connection):
    """What can be read, and how it ends."""
    parts = b""
    try:
        while part := connection.recv(100):
            parts += part
    except OSError as error:
        return f"{parts!r} {errno.errorcode[error.errno]}"
    return f"{parts!r} end"


def serve():
    listener = listen()
    assert not is_tcp(), "these are sockets of the kernel"
    if KIND == "rogues":
        for _ in range(8):
            connection = accepted(listener)
            print(outcome(connection))
            connection.close()
        return
    if KIND == "crowd":
        threads = [threading.Thread(target=answer, args=(accepted(listener), 1, 2)) for _ in range(CROWD)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return
    connection = accepted(listener)
    if KIND == "killed":
        connection.sendall(b"alive")
        exactly(connection, 1)
        os.kill(os.getpid(), signal.SIGKILL)
    talk(connection, 1, 2)
    connection.close()


def answer(connection, own, other):
    check(connection, other, 300_000)
    send_all(connection, own, 500_000)
    connection.close()


def ask(connection, own, other):
    send_all(connection, own, 300_000)
    connection.shutdown(socket.SHUT_WR)
    check(connection, other, 500_000)


def talk(connection, own, other):
    match KIND:
        case "bulk":
            both_ways(connection, own, other)
        case "half" if ROLE == "server":
            answer(connection, own, other)
        case "half" | "crowd":
            ask(connection, own, other)
        case "small":
            small(connection, own, other)
        case "polled":
            polled(connection, own, other)
        case "timed":
            timed(connection, own)
        case "forgetful":
            # The process ends with all bytes in flight, and closes nothing.
            if ROLE == "server":
                check(connection, other, 3_000_000)
            else:
                send_all(connection, own, 3_000_000)
                connection.detach()
        case "killed":
            assert exactly(connection, 5) == b"alive"
            connection.sendall(b"x")
            begin = time.monotonic()
            try:
                assert connection.recv(1) == b""
            except ConnectionResetError:
                pass
            assert time.monotonic() - begin < PATIENCE_S
        case _:
            raise ValueError(KIND)


def visit():
    if KIND == "crowd":
        connections = [connect() for _ in range(CROWD)]
        threads = [threading.Thread(target=talk, args=(connection, 2, 1)) for connection in connections]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return
    connection = connect()
    assert not is_tcp(), "these are sockets of the kernel"
    talk(connection, 2, 1)
    if KIND != "forgetful":
        connection.close()


def fail_loudly(arguments):
    sys.__excepthook__(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
    sys.stderr.flush()
    os._exit(1)


threading.excepthook = fail_loudly
serve() if ROLE == "server" else visit()
if KIND != "rogues":
    print("well")
