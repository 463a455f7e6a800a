# Two ends of PyPI's ibverbs: the one writes into the memory of the other, and reads it back; contents are compared.
import ctypes
import hashlib
import os
import socket
import struct
import sys

import ibverbs as ib

role, address = sys.argv[1:]
LENGTH = 4 << 20
GID = 1
memory = (ctypes.c_ubyte * LENGTH)()
start = ctypes.addressof(memory)
access = ib.AccessFlags.LOCAL_WRITE | ib.AccessFlags.REMOTE_WRITE | ib.AccessFlags.REMOTE_READ

context = ib.get_device_list()[0].open()
domain = context.alloc_pd()
completions = context.create_cq(64)
region = domain.reg_mr(start, LENGTH, access)
pair = domain.create_qp(ib.QPInitAttr(send_cq=completions, recv_cq=completions, qp_type=ib.QPType.RC))
local = ib.local_qp_info(pair, context.query_port(1), context.query_gid(1, GID), port=1)


def receive(link, length):
    data = b""
    while len(data) < length:
        data += link.recv(length - len(data)) or sys.exit("the other end has gone")
    return data


def connect(link):
    link.sendall(local.to_bytes() + struct.pack("!QI", start, region.rkey))
    remote = ib.QPInfo.from_bytes(receive(link, len(local.to_bytes())))
    ib.connect_rc(pair, remote, port=1, sgid_index=GID, access=access)
    return struct.unpack("!QI", receive(link, 12))


def transfer(opcode, remote, key):
    pair.post_send(
        ib.SendWR(
            wr_id=1,
            sg_list=[ib.SGE(region, LENGTH)],
            opcode=opcode,
            send_flags=ib.SendFlags.SIGNALED,
            remote_addr=remote,
            rkey=key,
        )
    )
    while not (done := completions.poll(16)):
        pass
    for completion in done:
        completion.raise_for_status()


def digest():
    return hashlib.sha256(bytes(memory)).digest()


if role == "target":
    with socket.create_server((address, 22346)) as server:
        link, _ = server.accept()
    connect(link)
    link.sendall(b"!")
    written = receive(link, 32)
    assert digest() == written, "what was written is not what is there"
    ctypes.memmove(start, os.urandom(LENGTH), LENGTH)
    link.sendall(digest())
    receive(link, 1)
else:
    link = socket.create_connection((address, 22346))
    remote, key = connect(link)
    receive(link, 1)
    ctypes.memmove(start, os.urandom(LENGTH), LENGTH)
    transfer(ib.WROpcode.RDMA_WRITE, remote, key)
    link.sendall(digest())
    expected = receive(link, 32)
    transfer(ib.WROpcode.RDMA_READ, remote, key)
    assert digest() == expected, "what was read is not what is there"
    link.sendall(b"!")
