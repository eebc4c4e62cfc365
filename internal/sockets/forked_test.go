//go:build unix

package sockets

import (
	"net"
	"syscall"
	"testing"
)

func TestSocketsAreNotedByDescriptor(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	NoteConn(ln) // a listener is not noted
	table := make([]uint64, 1024)
	KeepInodes(table)
	defer inodes.Store(nil)
	NoteConn(ln)
	NoteInode(-1)
	NoteInode(len(table))
	var fds, inode []uint64
	for fd, ino := range table {
		if ino != 0 {
			fds, inode = append(fds, uint64(fd)), append(inode, ino)
		}
	}
	var st syscall.Stat_t
	if len(fds) != 1 || syscall.Fstat(int(fds[0]), &st) != nil || st.Ino != inode[0] {
		t.Fatalf("noted descriptors %v with inodes %v: want the listener's", fds, inode)
	}
}
