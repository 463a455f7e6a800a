# Two agents of NIXL: the one reads what the other has, then writes to it; both ways contents are compared.
import ctypes
import hashlib
import os
import sys
import time

try:
    from nixl._api import nixl_agent, nixl_agent_config
except ImportError:
    from nixl_cu12._api import nixl_agent, nixl_agent_config

role, folder = sys.argv[1:]
LENGTH = 32 << 20
memory = (ctypes.c_ubyte * LENGTH)()
address = ctypes.addressof(memory)


def put(name, data):
    with open(f"{folder}/{name}.new", "wb") as file:
        file.write(data)
    os.rename(f"{folder}/{name}.new", f"{folder}/{name}")


def get(name):
    while not os.path.exists(f"{folder}/{name}"):
        time.sleep(0.1)
    with open(f"{folder}/{name}", "rb") as file:
        return file.read()


def digest():
    return hashlib.sha256(bytes(memory)).digest()


agent = nixl_agent(role, nixl_agent_config(backends=["UCX"]))
agent.register_memory([(address, LENGTH, 0, "")], "DRAM")
own = agent.get_xfer_descs([(address, LENGTH, 0)], "DRAM")
if role == "target":
    ctypes.memmove(address, os.urandom(LENGTH), LENGTH)
    put("descriptors", agent.get_serialized_descs(own))
    put("sum", digest())
    put("metadata", agent.get_agent_metadata())
    written = get("written")
    assert digest() == written, "what was written is not what is there"
    sys.exit(0)

agent.add_remote_agent(get("metadata"))
theirs = agent.deserialize_descs(get("descriptors"))


def transfer(kind):
    handle = agent.initialize_xfer(kind, own, theirs, "target", b"done")
    state = agent.transfer(handle)
    while state not in ("DONE", "ERR"):
        state = agent.check_xfer_state(handle)
    assert state == "DONE", state


transfer("READ")
assert digest() == get("sum"), "what was read is not what is there"
ctypes.memmove(address, os.urandom(LENGTH), LENGTH)
transfer("WRITE")
put("written", digest())
# The other side looks at it before this one's memory goes.
time.sleep(2)
