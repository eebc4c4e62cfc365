package hostinfo

import (
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHeldPortIsFreeForRank0Only(t *testing.T) {
	fd, port, err := HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		c.Close()
		t.Error("somebody listens on the port that is held")
	}
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("rank 0 cannot listen: %v", err)
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatalf("rank 0 cannot be reached: %v", err)
	}
	c.Close()
}
