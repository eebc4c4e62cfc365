package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseCPUsReadsTheKernelsLists(t *testing.T) {
	tests := map[string][]int{
		"0-3,8\n": {0, 1, 2, 3, 8}, "5": {5}, "": nil, "x": nil, "3-1": nil, "0,x,2": {0, 2}, "0-99999999": nil,
	}
	for list, want := range tests {
		if got := parseCPUs(list); !reflect.DeepEqual(got, want) {
			t.Errorf("parseCPUs(%q) = %v, want %v", list, got, want)
		}
	}
}

func TestFactsDescribeThisHost(t *testing.T) {
	f := Facts()
	var cpus []int
	for _, c := range f.Cores {
		cpus = append(cpus, c...)
	}
	slices.Sort(cpus)
	if want := boundTo(0); !reflect.DeepEqual(cpus, want) || len(cpus) == 0 {
		t.Errorf("cores %v, want each of %v once", f.Cores, want)
	}
	if f.Host == "" || f.Machine == "" {
		t.Errorf("host %q, machine %q", f.Host, f.Machine)
	}
}

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

func TestFindLooksWhereExecvpDoes(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("a/prog", 0o755)
	write("b/prog", 0o755)
	write("a/plain", 0o644)
	write("b/late", 0o755)
	write("a/late", 0o644)
	write("here", 0o755)
	path := dir + "/none:" + dir + "/a:" + dir + "/b"
	tests := []struct {
		name, path string
		want       string
		is         error
	}{
		{"prog", path, dir + "/a/prog", nil},
		{"late", path, dir + "/b/late", nil},
		{"plain", path, "", syscall.EACCES},
		{"nosuch", path, "", syscall.ENOENT},
		{"here", path, "", syscall.ENOENT},
		{"here", "", "", syscall.ENOENT},
		{"here", "x::y", "./here", nil},
		{"prog", "b", "b/prog", nil},
		{"./here", "", "./here", nil},
		{"a", path, "", syscall.ENOENT},
	}
	for _, tt := range tests {
		got, err := find(tt.name, dir, tt.path)
		if got != tt.want || !errors.Is(err, tt.is) {
			t.Errorf("find(%q) in PATH %q = %q, %v; want %q, %v", tt.name, tt.path, got, err, tt.want, tt.is)
		}
	}
	if _, err := find("here", dir, path); !strings.Contains(err.Error(), "want ./here") {
		t.Errorf("error %q does not say how to run a program of the working directory", err)
	}
}

func TestStatusOfTellsMissingFromForbidden(t *testing.T) {
	tests := map[error]int{
		syscall.ENOENT: 127, syscall.ENOTDIR: 127, syscall.EACCES: 126, syscall.ENOEXEC: 126, syscall.EAGAIN: 125,
		errors.New("x"): 125, fmt.Errorf("cannot: %w", syscall.ENOENT): 127,
	}
	for err, want := range tests {
		if got := statusOf(err); got != want {
			t.Errorf("statusOf(%v) = %d, want %d", err, got, want)
		}
	}
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
