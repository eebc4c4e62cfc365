package agent

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHeldPortIsFreeForRank0AndNobodyElse(t *testing.T) {
	fd, port, err := holdPort()
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

func TestLastLinesKeepsTheEnd(t *testing.T) {
	var twelve strings.Builder
	for i := range 12 {
		fmt.Fprintf(&twelve, "line %d\n", i)
	}
	tests := map[string]string{
		"": "", "a": "a", "a\n": "a\n", "a\nb": "a\nb", "\n\n": "\n\n",
		twelve.String(): strings.SplitN(twelve.String(), "\n", 3)[2],
	}
	for in, want := range tests {
		if got := string(lastLines([]byte(in), tailLines)); got != want {
			t.Errorf("lastLines(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNoInterfaceLeadsToLoopbackOrToNoAddress(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "::1", "localhost", "", "999.0.0.1"} {
		if name := interfaceTo(address); name != "" {
			t.Errorf("%q is reached through %s", address, name)
		}
	}
}
