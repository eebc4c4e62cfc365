package remote

import (
	"strings"
	"testing"
)

func TestLastWordsAreThoseThatSayWhy(t *testing.T) {
	for output, want := range map[string]string{
		"": "", "\n \n": "", "a\nb \r\n\n": "b", "use only with leave\n*****\n": "use only with leave",
		"fatal error: no files\n\ngoroutine 1 gp=0x1 m=0 mp=0x2 [running]:\nruntime.throw({0x8ad549?, 0x1?})\n\tpanic.go:1 +0xa5\n": "fatal error: no files",
		"x\nWarning: Permanently added 'h' (ED25519) to the list of known hosts.\n":                                                 "x",
		"x" + strings.Repeat("é", longestWords/2):                                                                                   "x" + strings.Repeat("é", longestWords/2-1) + "...",
	} {
		if got := lastLines(output, ""); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

const (
	banner = "******\n* Authorized use only.\n******\n"
	// ssh's output about a host whose key has changed
	changed = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n@@@@@@@@@@@@@@\r\n" +
		"IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\r\nSomeone could be eavesdropping on you right now (man-in-the-middle attack)!\r\n" +
		"It is also possible that a host key has just been changed.\r\nThe fingerprint for the ED25519 key sent by the remote host is\nSHA256:abc.\r\n" +
		"Please contact your system administrator.\r\nAdd correct host key in /h/known_hosts to get rid of this message.\r\n" +
		"Offending ED25519 key in /h/known_hosts:6\r\n  remove with:\r\n  ssh-keygen -f h -R h\r\nHost key for n1 has changed and you have requested strict checking.\r\nHost key verification failed.\r\n"
)

func TestReasonsOfFailedLogins(t *testing.T) {
	for _, tt := range []struct {
		status          int
		output, printed string
		want            string
	}{
		{255, "a@b: Permission denied (publickey,password).\n", "",
			"a@b: Permission denied (publickey,password); want a key that ssh may use without asking"},
		{255, "Host key verification failed.\n", "",
			"Host key verification failed; want its key in known_hosts: log in by hand once"},
		{255, changed, "", "Host key verification failed; its key is not the one that is known (/h/known_hosts:6): if it has been installed anew, remove that (ssh-keygen -f h -R h) and log in by hand once; else another machine may answer in its place"},
		{255, "ssh: connect to host n1 port 22: Connection refused\r\n", "",
			"ssh: connect to host n1 port 22: Connection refused"},
		{255, "ssh: connect to host gate port 22: Connection refused\r\nConnection closed by UNKNOWN port 65535\r\n",
			"", "ssh: connect to host gate port 22: Connection refused"},
		{255, banner + "a@b: Permission denied (password).\n", "",
			"a@b: Permission denied (password); want a key that ssh may use without asking; the host says: * Authorized use only."},
		{255, banner + "\"System is going down.\"\nConnection closed by 10.0.0.1 port 22\n", "",
			"Connection closed by 10.0.0.1 port 22; if it serves others, too many logins came at once: want a larger MaxStartups in its sshd_config; the host says: \"System is going down.\""},
		{255, "no way to n1\n", "", "no way to n1"},
		{255, "", "lost it", "ssh exited with it; the host says: lost it"},
		{1, banner, "This account is currently not available.\n",
			"ssh exited with it: * Authorized use only.; the host says: This account is currently not available."},
		{3, "no disk\n", "", "ssh exited with it: no disk"},
		{255, "\x1b]0;x\a\n", "\x1b[1mWelcome\r\n", "?]0;x?; the host says: ?[1mWelcome"},
		{0, "", "", "ssh exited with it"},
	} {
		if got := reason("ssh", "exited with it", tt.status, tt.output, tt.printed); got != tt.want {
			t.Errorf("%d, %q, %q: %q, want %q", tt.status, tt.output, tt.printed, got, tt.want)
		}
	}
}
