# Two transfer engines of Mooncake: the one writes to the other and reads it again; both ways contents are compared. That
# RDMA is used, and not TCP in its place, is seen in the counters of the device.
import ctypes
import hashlib
import os
import sys
import time

from mooncake.engine import TransferEngine

role, own, folder = sys.argv[1:]
LENGTH = 64 << 20
memory = (ctypes.c_ubyte * LENGTH)()
address = ctypes.addressof(memory)


def put(name, text):
    with open(f"{folder}/{name}.new", "w") as file:
        file.write(text)
    os.rename(f"{folder}/{name}.new", f"{folder}/{name}")


def get(name):
    while not os.path.exists(f"{folder}/{name}"):
        time.sleep(0.1)
    with open(f"{folder}/{name}") as file:
        return file.read()


def digest():
    return hashlib.sha256(bytes(memory)).hexdigest()


engine = TransferEngine()
assert engine.initialize(own, "P2PHANDSHAKE", "rdma", "sv_eth0") == 0
assert engine.register_memory(address, LENGTH) == 0
if role == "target":
    put("address", f"{own}:{engine.get_rpc_port()} {address}")
    written = get("written")
    assert digest() == written, "what was written is not what is there"
    sys.exit(0)

segment, theirs = get("address").split()
ctypes.memmove(address, os.urandom(LENGTH), LENGTH)
before = digest()
assert engine.transfer_sync_write(segment, address, int(theirs), LENGTH) == 0
ctypes.memset(address, 0, LENGTH)
assert engine.transfer_sync_read(segment, address, int(theirs), LENGTH) == 0
assert digest() == before, "what was read is not what was written"
with open("/sys/class/infiniband/sv_eth0/ports/1/hw_counters/sent_pkts") as file:
    assert int(file.read()) > LENGTH // 4096, "it went another way"
put("written", before)
