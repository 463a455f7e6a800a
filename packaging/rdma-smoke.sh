#!/bin/sh
# RDMA programs without RDMA hardware: a test of the software RNIC, for CI and Kubernetes.
#
#   rdma-smoke.sh                  both ends, on this host
#   rdma-smoke.sh server           one end: serves one client
#   rdma-smoke.sh client HOST      the other end
#
# Environment: DEVICE (sv_lo), PROGRAMS of perftest ("ib_write_bw ib_read_bw ib_send_lat"), ITERATIONS (1000), PATIENCE
# in seconds (60). Needs `selvedge` and its libraries, and perftest. Exit status 0: all programs ended well.
set -eu

device=${DEVICE:-sv_lo}
programs=${PROGRAMS:-ib_write_bw ib_read_bw ib_send_lat}
iterations=${ITERATIONS:-1000}
patience=${PATIENCE:-60}

fail() {
    echo "rdma-smoke: $*" >&2
    exit 1
}

# Runs one end of a program: its arguments are the program and, for a client, the server's address.
run() {
    program=$1
    shift
    timeout "$patience" selvedge verbs -- "$program" -F -d "$device" -n "$iterations" "$@"
}

server() {
    for program in $programs; do
        run "$program" >/dev/null || fail "$program: the server ends with status $?"
    done
}

# A server that has not begun yet refuses the connection: the client tries again.
client() {
    for program in $programs; do
        start=$(date +%s)
        until output=$(run "$program" "$1" 2>&1); do
            case $output in
                *"ouldn't connect"* | *"refused"*) ;;
                *) fail "$program: $output" ;;
            esac
            [ $(($(date +%s) - start)) -lt "$patience" ] || fail "$program: no server on $1 within $patience s"
            sleep 0.2
        done
        # The line below the titles has the results.
        echo "$output" | awk -v program="$program" '/#bytes/ { title = $0; getline; print program; print title; print }'
    done
}

command -v selvedge >/dev/null || fail "no selvedge on the PATH"
for program in $programs; do
    command -v "$program" >/dev/null || fail "no $program: install perftest, e.g. apt-get install perftest"
done

case ${1:-both} in
    server) server ;;
    client) client "${2:?the address of the server}" ;;
    both)
        server &
        client 127.0.0.1
        wait $!
        ;;
    *) fail "$1: server, client HOST, or nothing" ;;
esac
echo "rdma-smoke: all well"
