// Package p2p has messages between two ranks in all their modes, and the requests with which
// operations of every kind are waited for.
package p2p
