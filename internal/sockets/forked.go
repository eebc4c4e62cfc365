//go:build unix

package sockets

import (
	"sync/atomic"
	"syscall"
)

// This file notes which sockets are gompi's, for children that a C program makes by fork(). Such a
// child has a copy of every descriptor, and close-on-exec does not help until it calls exec. While
// it lives, the peers of a rank that died would wait for the end of connections that the child
// holds open. So the C library closes them in the child. A Go program makes no such children, and
// nothing is noted.

// inodes are those of the sockets, by descriptor, 0 where there is none. They are C's memory, nil
// in a Go program.
var inodes atomic.Pointer[[]uint64]

// KeepInodes has the sockets noted from now on in table, which the child reads.
func KeepInodes(table []uint64) { inodes.Store(&table) }

// NoteInode notes a socket. Its end is not noted: by its inode the child knows what the descriptor
// has become since.
func NoteInode(fd int) {
	table := inodes.Load()
	if table == nil || fd < 0 || fd >= len(*table) {
		return
	}
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) == nil {
		atomic.StoreUint64(&(*table)[fd], st.Ino)
	}
}

// NoteConn is NoteInode for a connection of package net.
func NoteConn(conn any) {
	c, ok := conn.(syscall.Conn)
	if !ok || inodes.Load() == nil {
		return
	}
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { NoteInode(int(fd)) })
	}
}
