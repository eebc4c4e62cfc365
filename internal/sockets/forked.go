//go:build unix

package sockets

import (
	"sync/atomic"
	"syscall"
)

// This file keeps a list of gompi's sockets, for children of a C program's fork(). Such a child has
// a copy of every descriptor, and close-on-exec does not help until the child calls exec. While the
// child lives, the peers of a dead rank would wait for the end of connections that the child holds
// open. So the C library closes them in the child. A Go program has no such children, and no list.

// inodes are the sockets' inodes by descriptor, 0 for other descriptors. The table is C's memory,
// nil in a Go program.
var inodes atomic.Pointer[[]uint64]

// KeepInodes sets the table of sockets, which the child reads.
func KeepInodes(table []uint64) { inodes.Store(&table) }

// NoteInode notes a socket. Closed sockets need no note: the child compares inodes, and so
// recognizes a descriptor that was reused.
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
