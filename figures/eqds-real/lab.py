"""The laboratory as its programs see it: hosts, processes in them, traffic over TCP, statistics."""

import ctypes
import json
import math
import multiprocessing
import os
import select
import shutil
import socket
import statistics
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
# Seconds until connections must be there.
PATIENCE = 30
# A process that forks would inherit threads' locks: there are no threads here.
multiprocessing.set_start_method("fork")


class Host:
    """A host of the laboratory."""

    def __init__(self, number):
        self.number = number
        self.namespace = os.environ[f"SELVEDGE_LAB_NS_{number}"]
        self.outer = os.environ[f"SELVEDGE_LAB_OUTER_{number}"]
        self.inner = os.environ[f"SELVEDGE_LAB_INNER_{number}"]
        self.address = self.outer if WITHOUT else self.inner

    def status(self):
        """Returns what the host's daemon says of itself."""
        socket = os.environ[f"SELVEDGE_LAB_SOCKET_{self.number}"]
        words = [os.environ.get("SELVEDGE") or "selvedge", "eqds", "status", "--json", "--socket", socket]
        return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    def command(self, *words, **options):
        """Runs a command in the host to its end and returns its output."""
        words = ["ip", "netns", "exec", self.namespace, *words]
        try:
            done = subprocess.run(words, capture_output=True, text=True, **options)
        except subprocess.TimeoutExpired as late:
            fail(f"`{' '.join(words)}` has not ended within {late.timeout:.0f} s")
        if done.returncode != 0:
            fail(f"`{' '.join(words)}` failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def background(self, *words):
        """Starts a command in the host."""
        words = ["ip", "netns", "exec", self.namespace, *words]
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def enter(self):
        """Moves this process into the host's network."""
        with open(f"/run/netns/{self.namespace}") as namespace:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                fail(f"cannot enter {self.namespace}: {os.strerror(ctypes.get_errno())}")

    def start(self, function, *arguments):
        """Starts a process that calls a function in the host."""

        def main():
            self.enter()
            try:
                function(*arguments)
            except (ConnectionError, KeyboardInterrupt):
                pass  # the other end has gone: the measurement is over
            except TimeoutError:
                print(f"{self.namespace}: no connection within {PATIENCE} s", file=sys.stderr)

        process = multiprocessing.Process(target=main, daemon=True)
        process.start()
        return process

    def begin(self, function, *arguments):
        """Starts a process that calls a function in the host; returns a function that waits for its result."""
        results, result = multiprocessing.Pipe(duplex=False)
        process = self.start(lambda: result.send(function(*arguments)))
        result.close()

        def wait():
            try:
                return results.recv()
            except EOFError:
                fail(f"the measurement in {self.namespace} has failed")
            finally:
                process.join()

        return wait

    def call(self, function, *arguments):
        """Calls a function in a process in the host, and returns what it returns."""
        return self.begin(function, *arguments)()


def fail(message):
    """Ends with a message."""
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(2)


def require(*programs):
    """Ends with a message if programs are missing."""
    packages = {"iperf3": "iperf3", "ping": "iputils-ping", "ethtool": "ethtool", "ip": "iproute2"}
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        names = " ".join(packages.get(program, program) for program in missing)
        fail(f"missing: {', '.join(missing)}; `apt-get install -y {names}`")


def number(name, default):
    """Returns a number of the laboratory."""
    return int(os.environ.get(f"SELVEDGE_LAB_{name}") or default)


def emit(figure, **values):
    """Prints a result as a line of JSON."""
    line = {
        "figure": figure,
        "tunnel": not WITHOUT,
        "hosts": len(HOSTS),
        "rate_bps": number("RATE", 0) or None,
        "buffer": number("BUFFER", 0),
        "mtu": number("MTU", 0),
        "paths": number("PATHS", 1),
    }
    line.update((key, round(value, 4) if isinstance(value, float) else value) for key, value in values.items())
    print(json.dumps(line), flush=True)


def hosts(least):
    """Returns all hosts; ends with a message if there are fewer than `least`."""
    if len(HOSTS) < least:
        fail(f"{least} hosts are needed, but there are {len(HOSTS)}: selvedge eqds lab --hosts {least} ...")
    return HOSTS


def quantile(values, share):
    """Returns the quantile of a list: the smallest value that at least this share does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values):
    """Returns the usual statistics of a list of times in seconds, in microseconds."""
    us = [value * 1e6 for value in values]
    return {
        "n": len(us),
        "min_us": min(us),
        "p50_us": quantile(us, 0.5),
        "p99_us": quantile(us, 0.99),
        "p999_us": quantile(us, 0.999),
        "max_us": max(us),
        "mean_us": statistics.fmean(us),
    }


def jain(values):
    """Returns Jain's index of fairness: 1 if all are equal, 1/n if one has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


def tcp(congestion):
    """Returns a socket of TCP with this congestion control."""
    stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    except OSError as error:
        fail(f"the kernel refuses the congestion control {congestion}: {error}; --congestion reno is always there")
    return stream


def connect(address, port, congestion):
    """Connects, and tries again while nobody listens yet."""
    end = time.monotonic() + PATIENCE
    while True:
        stream = tcp(congestion)
        stream.settimeout(PATIENCE)
        try:
            stream.connect((address, port))
            stream.settimeout(None)
            return stream
        except ConnectionRefusedError:
            stream.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def listen(port, connections):
    """Returns a socket that listens at all addresses of the host."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", port))
    listener.listen(connections)
    listener.settimeout(PATIENCE)
    return listener


def stream_to(address, port, congestion, name):
    """Sends its name and then bytes for ever."""
    stream = connect(address, port, congestion)
    stream.sendall(name.to_bytes(4, "big"))
    block = bytes(1 << 16)
    while True:
        stream.sendall(block)


def receive_exactly(stream, length):
    """Returns so many bytes of a stream."""
    parts = bytearray()
    while len(parts) < length:
        part = stream.recv(length - len(parts))
        if not part:
            raise ConnectionError("the stream has ended")
        parts += part
    return bytes(parts)


def receive_streams(port, connections, datagrams, warm, seconds, started=None):
    """Receives streams, and datagrams if `datagrams` is a port; returns the bits per second of each, by name.

    Counting begins `warm` seconds after the last stream has begun, and lasts `seconds`. Datagrams are named 0.
    """
    listener = listen(port, connections)
    names, poll = {}, select.epoll()
    udp = None
    if datagrams:
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        udp.bind(("0.0.0.0", datagrams))
        udp.setblocking(False)
        names[udp.fileno()] = (udp, 0)
        poll.register(udp, select.EPOLLIN)
    if started is not None:
        started.set()
    for _ in range(connections):
        stream, _ = listener.accept()
        name = int.from_bytes(receive_exactly(stream, 4), "big")
        stream.setblocking(False)
        names[stream.fileno()] = (stream, name)
        poll.register(stream, select.EPOLLIN)
    counts = dict.fromkeys((name for _, name in names.values()), 0)
    begin = time.monotonic() + warm
    end = begin + seconds
    buffer = bytearray(1 << 18)
    while (now := time.monotonic()) < end:
        for descriptor, _ in poll.poll(max(0.0, min(end - now, 0.1))):
            receiver, name = names[descriptor]
            try:
                for _ in range(16):
                    length = receiver.recv_into(buffer)
                    if length == 0:
                        poll.unregister(receiver)
                        break
                    if now >= begin:
                        counts[name] += length
            except BlockingIOError:
                pass
            except ConnectionError:
                poll.unregister(receiver)
    return {name: count * 8 / seconds for name, count in counts.items()}


if "SELVEDGE_LAB_HOSTS" not in os.environ:
    fail("runs in a laboratory: selvedge eqds lab --hosts N -- PROGRAM")
WITHOUT = os.environ.get("SELVEDGE_LAB_WITHOUT") == "1"
# A short run, to see whether it works; and the number of the run, of several.
SMOKE = os.environ.get("SELVEDGE_SMOKE") == "1"
RUN = int(os.environ.get("SELVEDGE_RUN") or 0)
HOSTS = [Host(host) for host in range(1, int(os.environ["SELVEDGE_LAB_HOSTS"]) + 1)]
