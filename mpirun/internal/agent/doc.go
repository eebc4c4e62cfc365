// Package agent runs the ranks of one host. It is a process and a session of its own, on the
// launcher's host as on any other. Its standard input and output are the channel to the launcher.
//
// Its work for a rank is in the files start (the memory that ranks share), process, output, input,
// wireup (news of other ranks) and end, in this order.
//
// When the launcher ends, the agent kills all processes below it and exits, too. It is the
// subreaper of its ranks, so that none of their processes escapes.
package agent
