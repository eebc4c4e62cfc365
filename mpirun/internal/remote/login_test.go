package remote

import (
	"reflect"
	"testing"

	"gompi/hostfile"
)

func TestTerminalLogsInAsTheAgentDid(t *testing.T) {
	tests := []struct {
		login []string
		want  []string
	}{
		{nil, []string{"sh", "-c", "exec gdb -p 7"}},
		{login([]string{"ssh", "-F", "file"}, hostfile.Host{Name: "node7", User: "me", Port: 2222}),
			[]string{"ssh", "-F", "file", "-p", "2222", "-l", "me", "-t", "node7", "sh -c 'exec gdb -p 7'"}},
		{login([]string{"/opt/other"}, hostfile.Host{Name: "node7"}),
			[]string{"/opt/other", "node7", "sh -c 'exec gdb -p 7'"}},
	}
	for _, tt := range tests {
		if got := Terminal(tt.login, "exec gdb -p 7"); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// Users are told to try the very command of gompirun.
func TestByHandIsTheUsersCommand(t *testing.T) {
	s := &SSH{command: []string{"ssh", "-F", "my config", "-o", "User=bob"}}
	if got, want := s.ByHand(hostfile.Host{Name: "n1", Port: 2222}),
		"ssh -F 'my config' -o User=bob -p 2222 n1 true"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
