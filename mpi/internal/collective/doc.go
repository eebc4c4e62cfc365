// Package collective has the collectives in their three forms: blocking, nonblocking and
// persistent; of communicators, intercommunicators and neighbors.
package collective
