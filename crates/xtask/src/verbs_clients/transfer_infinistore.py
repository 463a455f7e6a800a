# InfiniStore's server, or a client that stores blocks in it, reads them back, and compares them.
import asyncio
import ctypes
import os
import sys

import infinistore

role, address = sys.argv[1:]
PORT = 22345
BLOCK = 64 << 10
BLOCKS = 256
DEVICE = {"dev_name": "sv_eth0", "link_type": "Ethernet", "log_level": "error"}


def serve():
    import uvloop

    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    config = infinistore.ServerConfig(
        service_port=PORT, manage_port=PORT + 1, prealloc_size=1, minimal_allocate_size=64, **DEVICE
    )
    infinistore.register_server(loop, config)
    loop.run_forever()


async def store():
    connection = infinistore.InfinityConnection(
        infinistore.ClientConfig(
            host_addr=address, service_port=PORT, connection_type=infinistore.TYPE_RDMA, **DEVICE
        )
    )
    await connection.connect_async()
    length = BLOCK * BLOCKS
    written = (ctypes.c_ubyte * length).from_buffer(bytearray(os.urandom(length)))
    read = (ctypes.c_ubyte * length)()
    blocks = [(f"block {n}", n * BLOCK) for n in range(BLOCKS)]
    for memory, transfer in ((written, connection.rdma_write_cache_async), (read, connection.rdma_read_cache_async)):
        start = ctypes.addressof(memory)
        connection.register_mr(start, length)
        await transfer(blocks, BLOCK, start)
    assert bytes(read) == bytes(written), "what was read is not what was written"
    connection.close()


if role == "serve":
    serve()
else:
    asyncio.run(store())
