// Package agent runs the ranks of one host. It is a process and a session of its own, on the
// launcher's host as on any other. Its standard input and output are the channel to the launcher.
//
// Its work for a rank, in order:
//
//  1. make the segment and the doorbells that the host's ranks share (start)
//  2. make the rank's pipes and its boot socket, put the welcome into the socket, bind, fork
//     (process)
//  3. forward output, input, news and signals (output, input, wireup)
//  4. notice its end, drain its output, report (end)
//
// When the launcher ends, the agent kills all processes below it and exits, too. It is the
// subreaper of its ranks, so that none of their processes escapes.
package agent
