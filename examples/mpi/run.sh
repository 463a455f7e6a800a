#!/bin/sh
# run.sh PROGRAM ARGUMENTS...: runs an MPI program (OpenMPI) with a rank on each host of a laboratory.
here=$(cd "$(dirname "$0")" && pwd)
hosts=
for host in $SELVEDGE_LAB_HOSTS; do
    eval "hosts=\$hosts\${hosts:+,}\$SELVEDGE_LAB_NS_$host"
done
exec "$here/launch" "${hosts%%,*}" mpirun --allow-run-as-root --host "$hosts" --mca plm_rsh_agent "$here/launch" \
    --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 "$@"
