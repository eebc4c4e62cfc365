// Package comms has groups and communicators: how they are made, compared, named and freed,
// intercommunicators, and whose error handler is called.
package comms
