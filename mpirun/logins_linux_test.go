package mpirun

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gompi/mpirun/internal/testbed"
)

// asShell returns a command that makes shell the login shell of root on a host of a bed.
func asShell(t *testing.T, shell string) string {
	t.Helper()
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "passwd")
	changed := regexp.MustCompile(`(?m)^(root:.*:)[^:]*$`).ReplaceAllString(string(users), "${1}"+shell)
	if err := os.WriteFile(own, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("mount --bind '%s' /etc/passwd", own)
}

// Agents start under every login shell, found at our path or sent there.
func TestEveryLoginShellStartsAgents(t *testing.T) {
	t.Parallel() // it waits for logins
	var shells []string
	for _, name := range []string{"bash", "dash", "tcsh", "csh", "fish", "zsh", "ksh", "mksh"} {
		if path, err := exec.LookPath(name); err == nil {
			shells = append(shells, path)
		}
	}
	private, cache := t.TempDir(), t.TempDir()
	b := testbed.Make(t, testbed.Config{
		Hosts: len(shells), Private: []string{private, cache},
		SSHD:  func(int) string { return "SetEnv XDG_CACHE_HOME=" + cache },
		Setup: func(i int) string { return asShell(t, shells[i-1]) },
	})
	gompirun := filepath.Join(private, "gompirun")
	copyProgram(t, "gompirun", gompirun)
	for i, shell := range shells {
		for _, how := range []string{"gompirun", gompirun} {
			cmd := exec.Command(how, "-q", "-rsh", b.RSH(), "-H", b.Name(i+1), "-wdir", "/", "sh", "-c",
				"hostname; getent passwd root")
			status, out, output := finish(t, cmd)
			if want := b.Name(i+1) + "\nroot:"; status != 0 || !strings.HasPrefix(out, want) ||
				!strings.Contains(out, ":"+shell+"\n") {
				t.Errorf("%s, %s: status %d, %q; want 0 and %q and the shell\n%s", shell, how, status, out, want,
					strings.Join(output, "\n"))
			}
		}
	}
}

// If gompirun, or a preloaded program, cannot be put into a folder, the next folder is tried.
// Without a usable folder, the error names the obstacle of each. The obstacles in HOME:
func TestFoldersThatCannotBeUsedArePassedOver(t *testing.T) {
	t.Parallel() // it waits for logins
	private, home, tmp := t.TempDir(), t.TempDir(), t.TempDir()
	mount := func(what, dir string) string { return fmt.Sprintf("mount -t tmpfs -o %s tmpfs '%s'", what, dir) }
	const small = "size=16k"
	setups := []string{
		mount(small, home),
		mount("noexec", home),
		mount("ro", home),
		mount(small, home) + " && " + mount("noexec", tmp),
	}
	b := testbed.Make(t, testbed.Config{
		Hosts: len(setups), Private: []string{private, home, tmp},
		SSHD:  func(int) string { return "SetEnv XDG_CACHE_HOME=" + home + " TMPDIR=" + tmp },
		Setup: func(i int) string { return setups[i-1] },
	})
	gompirun := filepath.Join(private, "gompirun")
	copyProgram(t, "gompirun", gompirun)
	copyProgram(t, "rank", filepath.Join(private, "rank"))
	for i := 1; i < len(setups); i++ {
		cmd := exec.Command(gompirun, "-q", "-rsh", b.RSH(), "-H", b.Name(i)+":2", "-wdir", "/", "-preload-binary",
			private+"/rank", "meet", "goodbye")
		status, out, output := finish(t, cmd)
		if status != 0 || strings.Count(out, "cards [0 1]") != 2 {
			t.Errorf("%s: status %d, %q; want 0 and two cards\n%s", setups[i-1], status, out,
				strings.Join(output, "\n"))
		}
	}
	_, _, output := finish(t, exec.Command(gompirun, "-q", "-rsh", b.RSH(), "-H", b.Name(len(setups)), "true"))
	matches(t, "no folder", output, `^gompirun: host4: .*no folder to put gompirun in.*`+home+
		`/gompi-0: .*No space left on device; `+tmp+`/gompi-0: .*noexec`)
}

// Ranks have the umask of a login, whether gompirun has just been sent to their host or was there.
func TestRanksHaveTheUmaskOfALogin(t *testing.T) {
	t.Parallel() // it waits for logins
	private, cache := t.TempDir(), t.TempDir()
	b := testbed.Make(t, testbed.Config{Hosts: 1, Private: []string{private, cache}, SSHD: func(int) string {
		return "SetEnv XDG_CACHE_HOME=" + cache
	}})
	gompirun := filepath.Join(private, "gompirun")
	copyProgram(t, "gompirun", gompirun)
	for _, how := range []string{"sent", "found"} {
		status, out, output := finish(t, exec.Command(gompirun, "-q", "-rsh", b.RSH(), "-H", "host1", "-wdir", "/",
			"sh", "-c", "umask"))
		if status != 0 || out != "0022\n" {
			t.Errorf("%s: status %d, %q; want 0022\n%s", how, status, out, strings.Join(output, "\n"))
		}
	}
}

// Whatever a server shows to all, and whatever ends a login, its reason is told.
func TestTheReasonOfAFailedLoginIsReported(t *testing.T) {
	t.Parallel() // it waits for retries
	banner := filepath.Join(t.TempDir(), "banner")
	if err := os.WriteFile(banner, []byte("*******\n* Authorized use only.\n*******\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	hosts := []struct{ sshd, setup, want string }{
		{"PubkeyAuthentication no", "", `root@.*: Permission denied \(password\); want a key that ssh may use without asking`},
		{"ForceCommand echo only sftp here; exit 1", "",
			`ssh exited with status 1: .*; the host says: only sftp here$`},
		{"", asShell(t, "/usr/sbin/nologin"),
			`ssh exited with status 1: .*; the host says: This account is currently not available.$`},
		{"", "", `Host key verification failed; its key is not the one that is known \(.*known_hosts:4\): if it has been installed anew, remove that \(ssh-keygen .*\) and log in by hand once`},
	}
	b := testbed.Make(t, testbed.Config{
		Hosts: len(hosts),
		SSHD:  func(i int) string { return "Banner " + banner + "\n" + hosts[i-1].sshd },
		Setup: func(i int) string { return cmp.Or(hosts[i-1].setup, "true") },
	})
	known := filepath.Join(filepath.Dir(b.SSHConfig), "known_hosts")
	keys, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(keys), "\n")
	lines[3] = strings.Replace(lines[0], b.Addr(1), b.Addr(4), 1)
	if err := os.WriteFile(known, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, output := remotely(t, b, "-q", "-H", "host1,host2,host3,host4", "true")
	if status != statusFailed {
		t.Errorf("status %d, want %d", status, statusFailed)
	}
	for i, h := range hosts {
		matches(t, h.sshd, output, "^gompirun: "+b.Name(i+1)+": "+h.want)
	}
	_, lines = examineBed(t, b, "-H", "host1")
	matches(t, "doctor", lines, regexp.QuoteMeta(b.RSH()+" host1 true")+".* must work without asking")
}

// Limits of a host that are too low for its agent are named, however low they are.
func TestLimitsOfOtherHostsAreNamed(t *testing.T) {
	t.Parallel() // it waits most of the time
	limits := []string{"ulimit -n 6;", "ulimit -n 9;", "ulimit -n 12;",
		"ulimit -u 9; exec setpriv --reuid 54321 --clear-groups"}
	b := testbed.Make(t, testbed.Config{Hosts: len(limits), SSHD: func(i int) string {
		return `ForceCommand ` + limits[i-1] + ` sh -c "$SSH_ORIGINAL_COMMAND"`
	}})
	status, _, output := remotely(t, b, "-q", "-launch-agent", forAllUsers(t, "gompirun"), "-H",
		"host1,host2,host3,host4", "true")
	if status != statusFailed {
		t.Errorf("status %d, want %d", status, statusFailed)
	}
	const files = `exited with status 125: gompirun: agent: too many open files: the hard limit is %d \(ulimit -Hn\), and np=1 on one host needs up to 97`
	matches(t, "limits", output, `^gompirun: host1: .* `+fmt.Sprintf(files, 6),
		`^gompirun: host2: .* `+fmt.Sprintf(files, 9), `^gompirun: host3: .* `+fmt.Sprintf(files, 12),
		`^gompirun: host4: .*: there may be 9 threads and processes by this user's limit \(ulimit -u\), and there are \d+: want 12 more`)
}
