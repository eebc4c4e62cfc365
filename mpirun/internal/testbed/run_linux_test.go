package testbed

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	command = flag.String("command", "", "shell command that TestRunCommand runs, with $HOSTFILE and $RSH")
	number  = flag.Int("hosts", 4, "hosts of TestRunCommand")
	private = flag.String("private", "", "folders, with commas between, that are empty on every host of TestRunCommand, and its own")
)

// TestRunCommand makes hosts for a command, as for one that measures:
//
//	go test ./mpirun/internal/testbed -run RunCommand -v -timeout 0 -args -hosts 4 \
//	    -command 'gompirun doctor -hostfile $HOSTFILE -rsh "$RSH"'
//
// The hostfile has addresses, which all launchers understand. Where logging in
// runs what the user's home says, and the logins of all hosts at once stand in
// each other's way, -private "$HOME" makes it as it is on hosts of their own.
func TestRunCommand(t *testing.T) {
	if *command == "" {
		t.Skip("no -command")
	}
	c := Config{Hosts: *number}
	if *private != "" {
		c.Private = strings.Split(*private, ",")
	}
	b := Make(t, c)
	var hosts strings.Builder
	for i := 1; i <= *number; i++ {
		fmt.Fprintf(&hosts, "%s slots=2\n", b.Addr(i))
	}
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte(hosts.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := b.Command(0, "sh", "-c", *command)
	cmd.Env = append(os.Environ(), "HOSTFILE="+file, "RSH="+b.RSH())
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}
