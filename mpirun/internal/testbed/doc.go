// Package testbed makes real hosts for tests, on one Linux machine: network namespaces joined by a
// bridge, each with a name of its own and a real sshd. The bridge is in a namespace too, so that
// neither the programs of this machine nor those of other beds see it: it comes and goes with a
// test. Only tests import it. It needs root and the packages iproute2, openssh-server and
// openssh-client; without them a test is left out, with a line that names what is missing.
//
// NewSlurm makes a real Slurm in the same way: munged, slurmctld and a slurmd for each of some
// nodes, which all are this machine.
package testbed
