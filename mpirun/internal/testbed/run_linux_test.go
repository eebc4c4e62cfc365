package testbed

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var (
	command = flag.String("command", "", "shell command that TestRunCommand runs, with $HOSTFILE and $RSH, and TestRunInSlurm, where srun finds the nodes")
	number  = flag.Int("hosts", 4, "hosts of TestRunCommand")
	rate    = flag.String("rate", "", "what each link of TestRunCommand carries each way, such as 1gbit (default no limit)")
	private = flag.String("private", "", "folders, with commas between, that are empty on every host of TestRunCommand, and its own")
)

// TestRunCommand makes hosts for a command, as for one that measures:
//
//	go test ./mpirun/internal/testbed -run RunCommand -v -timeout 0 -args -hosts 4 \
//	    -command 'gompirun doctor -hostfile $HOSTFILE -rsh "$RSH"'
//
// The hostfile has addresses, which all launchers understand. If logins run scripts of the user's
// home, simultaneous logins to all hosts get in each other's way: -private "$HOME" prevents that,
// as on separate hosts. An interrupt is the command's: when it has ended the hosts are removed.
// If hosts cannot be made the test fails, because nothing has run.
func TestRunCommand(t *testing.T) {
	if *command == "" {
		return // only with a command
	}
	c := Config{Hosts: *number, Rate: *rate}
	if *private != "" {
		c.Private = strings.Split(*private, ",")
	}
	t.Cleanup(func() {
		if t.Skipped() {
			t.Error("the command has not run")
		}
	})
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the command
	for {
		select {
		case s := <-interrupts:
			syscall.Kill(-cmd.Process.Pid, s.(syscall.Signal)) // it fails if the command has just ended
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}
