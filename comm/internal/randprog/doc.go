// Package randprog makes random programs of comm's operations, runs them, and compares
// every buffer with a sequential model that knows nothing of comm.
//
// A Program is a list of units: a collective, an exchange of messages, a communicator
// made or closed, an operation that is given up. All ranks go through the units in
// order. What a unit starts and does not wait for is waited for before a later one. So no
// program can deadlock: every operation of the first unit that is not complete has been
// started by all its ranks, or they are on their way to it.
//
// Generate is pure: a seed and a number of ranks give the same program everywhere. Run
// is one rank of a program. Only tests import the package.
package randprog
