#!/bin/bash
# Runs the measurements, with tunnels and without: run.sh FILE [NAME]... appends lines of JSON to FILE.
# SELVEDGE: the program. QUICK=1: short runs, to see whether they work. WAYS: "with without" or one of them.
set -u
cd "$(dirname "$0")" || exit 1
selvedge=${SELVEDGE:-selvedge}
file=${1:?usage: run.sh FILE [throughput|latency|latency-deep|incast|udp-flood|ecmp]...}
shift
[ $# -gt 0 ] || set -- throughput latency latency-deep incast udp-flood ecmp
failed=0

# lab ARGUMENTS: runs a laboratory; both ARGUMENTS: with tunnels and without.
lab() {
    echo "eqds lab $*" >&2
    "$selvedge" eqds lab "$@" >> "$file" || failed=1
}
both() {
    for way in ${WAYS:-with without}; do
        if [ "$way" = with ]; then lab "$@"; else lab --without "$@"; fi
    done
}

quick() { [ -n "${QUICK:-}" ]; }

for name in "$@"; do
    case $name in
    throughput)
        arguments=(--seconds 5 --runs 3)
        quick && arguments=(--seconds 2 --runs 1)
        for mtu in 1500 9000; do
            # The MTU inside: packets outside have 84 bytes more.
            for way in ${WAYS:-with without}; do
                network=(--hosts 2 --mtu $((mtu + 84)))
                [ "$way" = without ] && network=(--without --hosts 2 --mtu $mtu)
                lab "${network[@]}" -- ./throughput.py "${arguments[@]}"
            done
        done
        ;;
    latency | latency-deep)
        network=(--hosts 10 --buffer 100)
        [ "$name" = latency-deep ] && network=(--hosts 34 --buffer 1000)
        arguments=(--count 1000 --idle 5)
        quick && arguments=(--count 100 --idle 1)
        both "${network[@]}" --rate 100Mbps -- ./latency.py "${arguments[@]}"
        ;;
    incast)
        arguments=(--rounds 100 --seconds 10)
        quick && arguments=(--rounds 10 --seconds 2)
        for hosts in 9 33; do
            both --hosts $hosts --rate 100Mbps --buffer 20 -- ./incast.py "${arguments[@]}"
        done
        ;;
    udp-flood)
        arguments=(--seconds 10)
        quick && arguments=(--seconds 3)
        both --hosts 6 --rate 100Mbps --buffer 20 -- ./udp-flood.py "${arguments[@]}"
        ;;
    ecmp)
        arguments=(--seconds 5 --runs 5)
        quick && arguments=(--seconds 2 --runs 1)
        both --hosts 16 --paths 4 --rate 30Mbps --buffer 20 -- ./ecmp.py "${arguments[@]}"
        ;;
    *)
        echo "run.sh: no measurement $name: throughput, latency, latency-deep, incast, udp-flood, ecmp" >&2
        exit 2
        ;;
    esac
done
exit $failed
