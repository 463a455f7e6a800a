#!/bin/bash
# Measures one TCP flow (cubic) and ping between two namespaces: over veth, through EQDS, through EQDS without
# encryption, through a forwarder that only forwards (plain-forwarder.c), or through wireguard-go.
# usage: compare.sh veth|eqds|eqds-clear|plain|wireguard-go [MTU [SECONDS]]; as root. SELVEDGE: the program.
set -eu
cd "$(dirname "$0")"
kind=${1:?usage: compare.sh veth|eqds|eqds-clear|plain|wireguard-go [MTU [SECONDS]]}
mtu=${2:-1500} seconds=${3:-5} pings=400 selvedge=${SELVEDGE:-selvedge}
[ -z "${SELVEDGE_SMOKE:-}" ] || { seconds=1 pings=20; }
for program in iperf3 ping gcc wg wireguard-go ip; do
    command -v $program > /dev/null || { echo "compare.sh: no $program here" >&2; exit 2; }
done
folder=$(mktemp -d)
umask 077
gcc -O2 -o "$folder/plain-forwarder" plain-forwarder.c
for i in 1 2; do wg genkey > "$folder/key$i"; done

pids=()
clear() {
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2> /dev/null || true
    wait 2> /dev/null || true
    pids=()
    for i in 1 2; do ip netns delete sv-compare$i 2> /dev/null || true; done
}
trap 'clear; rm -r "$folder"' EXIT

network() {
    for i in 1 2; do ip netns add sv-compare$i; done
    ip link add eth0 netns sv-compare1 mtu "$mtu" type veth peer name eth0 netns sv-compare2 mtu "$mtu"
    for i in 1 2; do
        ip -n sv-compare$i address add 10.79.0.$i/24 dev eth0
        ip -n sv-compare$i link set eth0 up
        ip -n sv-compare$i link set lo up
    done
}

# daemons SEAL: starts EQDS's daemons.
daemons() {
    for i in 1 2; do
        j=$((3 - i))
        cat > "$folder/h$i.toml" << TOML
name = "h$i"
addresses = ["10.79.0.$i"]
link-rate = "10Gbps"
mtu = $mtu
prefixes = ["10.80.$i.0/24"]
inner-addresses = ["10.80.$i.1/24"]
private-key-file = "key$i"
seal = "$1"
state = "epochs$i"
[[peer]]
name = "h$j"
address = "10.79.0.$j"
prefixes = ["10.80.$j.0/24"]
public-key = "$(wg pubkey < "$folder/key$j")"
TOML
        ip netns exec sv-compare$i "$selvedge" eqds up --config "$folder/h$i.toml" --socket "$folder/s$i" > /dev/null 2>&1 &
        pids+=($!)
    done
}

network
peer=10.80.2.1
case $kind in
veth) peer=10.79.0.2 ;;
eqds) daemons aes-128-gcm ;;
eqds-clear) daemons off ;;
plain)
    for i in 1 2; do
        ip netns exec sv-compare$i "$folder/plain-forwarder" t0 10.79.0.$i 10.79.0.$((3 - i)) "$mtu" &
        pids+=($!)
    done
    sleep 0.5
    for i in 1 2; do
        ip -n sv-compare$i address add 10.80.$i.1/16 dev t0
        ip -n sv-compare$i link set t0 mtu $((mtu - 84)) txqueuelen 1000 up
    done
    ;;
wireguard-go)
    for i in 1 2; do
        # Control sockets are named after devices.
        ip netns exec sv-compare$i env WG_PROCESS_FOREGROUND=1 wireguard-go -f svwg$i > /dev/null 2>&1 &
        pids+=($!)
    done
    sleep 1
    for i in 1 2; do
        j=$((3 - i))
        ip netns exec sv-compare$i wg set svwg$i private-key "$folder/key$i" listen-port 51820 peer \
            "$(wg pubkey < "$folder/key$j")" endpoint 10.79.0.$j:51820 allowed-ips 10.80.$j.0/24
        ip -n sv-compare$i address add 10.80.$i.1/16 dev svwg$i
        ip -n sv-compare$i link set svwg$i mtu $((mtu - 80)) up
    done
    ;;
*)
    echo "compare.sh: no way $kind" >&2
    exit 2
    ;;
esac
sleep 1
# pings ADDRESS: the median round trip in microseconds.
pings() {
    ip netns exec sv-compare1 ping -c 2 -i 0.2 "$1" > /dev/null
    ip netns exec sv-compare1 ping -c $pings -i 0.005 "$1" | sed -n 's/.*time=\([0-9.]*\) ms/\1/p' | sort -n |
        awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] * 1000 }'
}
outside=$(pings 10.79.0.2) inside=$(pings $peer)
ip netns exec sv-compare2 iperf3 -s -1 > /dev/null &
pids+=($!)
sleep 0.3
rate=$(ip netns exec sv-compare1 timeout $((seconds + 20)) iperf3 -c $peer -C cubic -t "$seconds" -f g | awk '/receiver/ { print $7 }')
added=$(awk "BEGIN { print $inside - $outside }")
echo "{\"figure\": \"compare\", \"way\": \"$kind\", \"mtu\": $mtu, \"gbps\": $rate, \"ping_p50_us\": $inside, \"added_p50_us\": $added}"
