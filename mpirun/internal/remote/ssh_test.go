package remote

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gompi/hostfile"
)

func TestUsersOptionsComeBeforeOurs(t *testing.T) { synctest.Test(t, usersOptionsComeBeforeOurs) }

// In a bubble no time goes by.
func usersOptionsComeBeforeOurs(t *testing.T) {
	s, err := NewSSH([]string{"/usr/bin/ssh", "-i", "key", "-o", "ConnectTimeout=1"},
		"docker exec -i c gompirun", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	argv := s.argv(ctx, hostfile.Host{Name: "node1", User: "alice", Port: 2222}, false)
	line := strings.Join(argv, " ")
	for _, want := range []string{" -o BatchMode=yes ", " -o NumberOfPasswordPrompts=0 ", " -o ConnectTimeout=3 "} {
		if !strings.Contains(line, want) {
			t.Errorf("%s: want %q", line, want)
		}
	}
	if !strings.HasPrefix(line, "/usr/bin/ssh -i key -o ConnectTimeout=1 -x -T ") {
		t.Errorf("%s: want what the user said first, of which ssh takes the first", line)
	}
	want := []string{"-p", "2222", "-l", "alice", "node1", "docker exec -i c gompirun " + AgentFlag}
	if got := argv[len(argv)-len(want):]; !slices.Equal(got, want) {
		t.Errorf("it ends with %q, want %q", got, want)
	}

	// Commands other than ssh may not know its options.
	s.command, s.agent = []string{"./kubexec.sh"}, ""
	argv = s.argv(ctx, hostfile.Host{Name: "node1"}, false)
	if len(argv) != 3 || argv[1] != "node1" || !strings.HasPrefix(argv[2], "exec sh -c ") {
		t.Errorf("%q: want the command, the host and what to run there", argv)
	}
}

// Users' variables for their programs must not break ssh, and nothing may ask.
func TestSSHIsNotGivenWhatBreaksIt(t *testing.T) {
	got := environment([]string{"A=b", "LD_LIBRARY_PATH=/opt/cuda", "LD_PRELOAD=x.so", "SSH_AUTH_SOCK=/s",
		"SSH_ASKPASS=/bin/ask"})
	if want := []string{"A=b", "SSH_AUTH_SOCK=/s", "SSH_ASKPASS_REQUIRE=never"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
