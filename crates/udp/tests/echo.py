"""Datagrams in every way that Python knows, between a server and a client: `echo.py server|client|again ADDRESS`."""

import os
import select
import socket
import struct
import sys
import time

role, addr = sys.argv[1], sys.argv[2]
PORT = 6000

def server():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", PORT))
    print("ready", flush=True)
    while True:
        data, peer = s.recvfrom(65535)
        if data == b"who": s.sendto(repr(peer).encode(), peer)
        else: s.sendto(data, peer)

def again():
    """After a restart of the server's daemon, which its program notices when it waits."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    for _ in range(20):
        s.sendto(b"again", (addr, PORT))
        try:
            if s.recv(9) == b"again":
                print("well")
                return
        except OSError:
            pass
    sys.exit("no answer")

def client():
    peer = (addr, PORT)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    s.sendto(b"hello", peer); d, p = s.recvfrom(100); assert (d, p) == (b"hello", peer), (d, p)
    big = os.urandom(65507); s.sendto(big, peer); d, p = s.recvfrom(65535); assert d == big
    s.sendto(b"", peer); assert s.recvfrom(10)[0] == b""
    try: s.sendto(bytes(65508), peer); assert False
    except OSError as e: assert e.errno == 90
    # truncation, peek
    s.sendto(b"0123456789", peer)
    assert s.recv(4, socket.MSG_PEEK) == b"0123"
    assert s.recv(4) == b"0123"
    # connected, write/read
    c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); c.connect(peer); c.settimeout(5)
    assert c.getpeername() == peer
    os.write(c.fileno(), b"by write")
    r, w, _ = select.select([c], [c], [], 5); assert w
    r, _, _ = select.select([c], [], [], 5); assert r == [c]
    assert c.recv(100) == b"by write"
    r, _, _ = select.select([c], [], [], 0.05); assert r == []
    # who: source address is right
    c.send(b"who"); me = eval(c.recv(100)); assert me == c.getsockname(), (me, c.getsockname())
    # poll
    p = select.poll(); p.register(c, select.POLLIN); assert p.poll(20) == []
    c.send(b"x"); assert p.poll(5000) == [(c.fileno(), select.POLLIN)]; c.recv(9)
    # epoll, edge and level
    for et in (0, select.EPOLLET):
        e = select.epoll(); e.register(c, select.EPOLLIN | et)
        assert e.poll(0.02) == []
        c.send(b"y"); assert e.poll(5)[0] == (c.fileno(), select.EPOLLIN)
        assert c.recv(9) == b"y"
        assert e.poll(0.02) == []
        c.send(b"z"); assert e.poll(5); c.recv(9); e.close()
    # nonblocking
    c.setblocking(False)
    try: c.recv(1); assert False
    except BlockingIOError: pass
    c.setblocking(True); c.settimeout(0.2); t = time.time()
    try: c.recv(1); assert False
    except TimeoutError: assert 0.15 < time.time() - t < 2
    c.settimeout(None)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 200000)); t = time.time()
    try: c.recv(1); assert False
    except BlockingIOError: assert 0.15 < time.time() - t < 2
    # dup, close
    d = c.dup(); d.settimeout(5); c.close(); d.send(b"dup"); assert d.recv(9) == b"dup"
    # fork
    pid = os.fork()
    if pid == 0:
        d.send(b"child"); ok = d.recv(9) == b"child"; os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0
    # a child that closes its copy ends nothing
    e = select.epoll()
    e.register(d, select.EPOLLIN)
    if os.fork() == 0:
        os.close(d.fileno())
        os._exit(0)
    os.wait()
    d.send(b"watched")
    assert e.poll(5)
    assert d.recv(9) == b"watched"
    e.close()
    d.send(b"parent"); assert d.recv(9) == b"parent"
    # sendmsg/recvmsg
    d.sendmsg([b"a", b"bc", b"def"]); got = d.recvmsg_into([bytearray(2), bytearray(10)]); assert got[0] == 6, got
    # a full ring: poll waits for room
    full = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    full.connect((addr, PORT + 1))
    full.setblocking(False)
    waits = 0
    for _ in range(500):
        try:
            full.send(bytes(60000))
        except BlockingIOError:
            assert select.select([], [full], [], 10)[1] == [full]
            waits += 1
        except ConnectionRefusedError:
            pass
    assert waits > 0
    # refused
    f = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); f.connect((addr, 9)); f.settimeout(5); f.send(b"?")
    try: f.recv(1); assert False
    except ConnectionRefusedError: pass
    # others: loopback is the kernel's
    a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(("127.0.0.1", 0)); a.settimeout(5)
    b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); b.sendto(b"local", a.getsockname()); assert a.recv(9) == b"local"
    # a mixed socket: kernel and native
    m = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); m.bind(("0.0.0.0", 0)); m.settimeout(5)
    b.sendto(b"from kernel", ("127.0.0.1", m.getsockname()[1])); m.sendto(b"native", peer)
    time.sleep(0.2)
    assert {m.recv(20), m.recv(20)} == {b"from kernel", b"native"}
    # v6 socket with v4 addresses
    v = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); v.settimeout(5); v.sendto(b"v6", ("::ffff:" + addr, PORT))
    d6, p6 = v.recvfrom(9); assert d6 == b"v6" and p6[0] == "::ffff:" + addr, p6
    # latency
    t = time.time()
    for _ in range(500): d.send(b"ping"); d.recv(9)
    print("round trip %.0f us" % ((time.time() - t) * 2000), flush=True)
    print("well", flush=True)

{"server": server, "client": client, "again": again}[role]()
