// Package randprog makes random programs of comm's operations, runs them, and compares
// every buffer with a sequential model that knows nothing of comm.
//
// A Program is a list of units: a collective, an exchange of messages, a communicator made or
// closed, an operation that is given up. All ranks go through the units in order. An operation
// that a unit starts without waiting for it is waited for before some later unit. So no program
// can deadlock: all ranks of the first incomplete unit have started its operations, or will
// reach it without waiting for a later unit.
//
// Generate is pure: a seed and a number of ranks give the same program everywhere. Run runs
// one rank of a program. All of it is tests.
package randprog
