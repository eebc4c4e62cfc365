// Package infos has MPI's info objects: keys and values.
package infos
