// Package testbed makes real hosts for tests, on one Linux machine: network namespaces joined by
// a bridge, each with a name of its own and a real sshd. The bridge is in a namespace of its own,
// invisible to the machine's programs and other beds, and ends with its test. Only tests import
// the package. It needs root and the packages iproute2, openssh-server and openssh-client;
// without them a test is skipped, with a line that names the missing package.
//
// NewSlurm likewise makes a real Slurm: munged, slurmctld, and a slurmd for each node. All nodes
// are this machine.
package testbed
