#!/bin/bash
# Sends a thousand datagrams from one namespace to the other, through the bad network between them. What became of them
# is told by `selvedge impair` at the end.
ip netns exec sv-a bash -c 'for n in {1..1000}; do echo "datagram $n" > /dev/udp/10.78.0.2/9; done' 2> /dev/null
