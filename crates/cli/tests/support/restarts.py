#!/usr/bin/env python3
"""Kills EQDS daemons under load, and checks that all bytes of a TCP connection arrive: runs in `selvedge eqds lab`."""

import ctypes
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time

SELVEDGE, FOLDER = sys.argv[1], os.environ["SELVEDGE_LAB_FOLDER"]
PORT, BLOCK, KILLS = 5000, 1 << 16, 4
multiprocessing.set_start_method("fork")


def of(host, what):
    return os.environ[f"SELVEDGE_LAB_{what}_{host}"]


def block(number):
    return number.to_bytes(8, "big") * (BLOCK // 8)


def enter(host):
    with open(f"/run/netns/{of(host, 'NS')}") as namespace:
        assert ctypes.CDLL(None).setns(namespace.fileno(), 0x40000000) == 0


def send(stop):
    """Sends blocks of known content until it is told to stop, then how many there were."""
    enter(1)
    stream = socket.create_connection((of(2, "INNER"), PORT), 30)
    stream.settimeout(120)
    number = 0
    while not stop.is_set():
        stream.sendall(block(number))
        number += 1
    stream.sendall(b"end" + number.to_bytes(8, "big"))
    assert stream.recv(4) == b"well"


def receive(ready, progress, outcome):
    """Checks each block."""
    enter(2)
    listener = socket.create_server((of(2, "INNER"), PORT))
    ready.set()
    stream, _ = listener.accept()
    stream.settimeout(120)
    number, held = 0, bytearray()
    while not held.startswith(b"end"):
        held += stream.recv(1 << 20)
        while len(held) >= BLOCK:
            assert held[:BLOCK] == block(number), f"block {number} is damaged"
            del held[:BLOCK]
            number += 1
            progress.value = number
    while len(held) < 11:
        held += stream.recv(11)
    assert held[:3] == b"end" and int.from_bytes(held[3:], "big") == number, "blocks are missing"
    stream.sendall(b"well")
    outcome.put(number)


def daemon(host):
    """Returns the number of the daemon's process."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        if f"{FOLDER}/h{host}.toml" in words and "ip" not in words:
            return int(process)
    sys.exit(f"no daemon of host {host}")


def restart(host):
    """Kills a daemon and starts another; returns it when it is ready."""
    os.kill(daemon(host), signal.SIGKILL)
    time.sleep(0.2)
    words = ["ip", "netns", "exec", of(host, "NS"), SELVEDGE, "eqds", "up"]
    words += ["--config", f"{FOLDER}/h{host}.toml", "--socket", of(host, "SOCKET")]
    started = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    for line in started.stderr:
        if "ready" in line:
            return started
    sys.exit(f"the daemon of host {host} does not start again")


def main():
    ready, stop = multiprocessing.Event(), multiprocessing.Event()
    progress, outcome = multiprocessing.Value("q", 0), multiprocessing.Queue()
    receiver = multiprocessing.Process(target=receive, args=(ready, progress, outcome), daemon=True)
    receiver.start()
    assert ready.wait(30)
    sender = multiprocessing.Process(target=send, args=(stop,), daemon=True)
    sender.start()
    daemons = []
    for kill in range(KILLS):
        # Under load: each time, more has arrived than before.
        before = progress.value
        end = time.monotonic() + 60
        while progress.value < before + 50:
            assert time.monotonic() < end and sender.is_alive() and receiver.is_alive(), "nothing moves"
            time.sleep(0.02)
        daemons.append(restart(1 + kill % 2))
    stop.set()
    blocks = outcome.get(timeout=120)
    sender.join(30)
    assert sender.exitcode == 0
    for running in daemons:
        running.terminate()
    print(f"{blocks} blocks, {KILLS} kills: well")


main()
