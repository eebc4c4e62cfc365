package remote

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"gompi/mpirun/internal/monitor"
)

// sshFailed is the exit status of ssh for its own failures.
const sshFailed = 255

// reason explains why a login has ended without becoming an agent: by the last line of ssh
// itself, or ssh's end; then by the host's output, on stderr, which also has a server's banner,
// or on stdout.
func reason(via, how string, status int, stderr, stdout string) string {
	if status == sshFailed {
		own, others := split(stderr)
		if lastLines(own, "") == "" {
			own, others = stderr, "" // no ssh, or a new version: its own messages name the host, too
		}
		if last := lastLines(own, ""); last != "" {
			return withRemedy(last, own) + lastLines(others, "; the host says: ") +
				lastLines(stdout, "; the host says: ")
		}
	}
	return fmt.Sprintf("%s %s%s%s", via, how, lastLines(stderr, ": "), lastLines(stdout, "; the host says: "))
}

// byClient matches lines of OpenSSH's client itself. Other lines are a banner, or output of the
// host's shell and programs.
var byClient = regexp.MustCompile(`^(ssh: |kex_exchange_identification: |ssh_exchange_identification: |banner exchange: |ssh_dispatch_run_fatal: |` +
	`channel \d+: open failed: |client_loop: |Connection (closed|reset|timed out|to )|Disconnected from |Received disconnect from |Timeout, server |` +
	`Unable to negotiate |Bad owner or permissions |Host key verification failed|No .* host key is known for |Too many authentication failures|` +
	`stdio forwarding failed|@@@|@ .* @$|IT IS POSSIBLE THAT |Someone could be eavesdropping |It is also possible that a host key |The fingerprint for the |` +
	`Please contact your system administrator|Add correct host key in |Offending .* key in |Host key for .* has changed |Warning: |SHA256:|remove with:|ssh-keygen -f )` +
	`|: Permission denied \(|: Too many authentication failures`)

// split separates standard error into the lines of ssh's client, and the others.
func split(stderr string) (client, others string) {
	for line := range strings.Lines(stderr) {
		if byClient.MatchString(strings.TrimSpace(line)) {
			client += line
		} else {
			others += line
		}
	}
	return client, others
}

var (
	offendingKey = regexp.MustCompile(`Offending .* key in (\S+)`)
	removeKey    = regexp.MustCompile(`ssh-keygen -f .* -R .*`) // as Debian's ssh prints it
)

// withRemedy adds advice to the last line of ssh's client, if there is advice for it.
func withRemedy(last, stderr string) string {
	remedy := ""
	switch {
	case strings.Contains(last, "Permission denied"):
		remedy = "want a key that ssh may use without asking"
	case strings.Contains(stderr, "HOST IDENTIFICATION HAS CHANGED"):
		remedy = "its key is not the one that is known"
		if known := offendingKey.FindStringSubmatch(stderr); known != nil {
			remedy += " (" + known[1] + ")"
		}
		remove := "ssh-keygen -R"
		if command := removeKey.FindString(stderr); command != "" {
			remove = strings.TrimSpace(command)
		}
		remedy += ": if it has been installed anew, remove that (" + remove +
			") and log in by hand once; else another machine may answer in its place"
	case strings.Contains(last, "Host key verification failed"):
		remedy = "want its key in known_hosts: log in by hand once"
	case isDropped(stderr):
		remedy = "if it serves others, too many logins came at once: want a larger MaxStartups in its sshd_config"
	default:
		return last
	}
	return strings.TrimSuffix(last, ".") + "; " + remedy
}

// isDropped reports whether the server ended the connection before the login. sshd does that to
// some of too many simultaneous logins (MaxStartups), and to all where logins are forbidden.
func isDropped(stderr string) bool {
	own, _ := split(stderr)
	last := lastLines(own, "")
	return strings.Contains(last, "_exchange_identification: ") || strings.Contains(last, "Connection reset by ") ||
		strings.HasPrefix(last, "Connection closed by ")
}

// longestWords is the most bytes shown of a line.
const longestWords = 300

// lastLines returns the last line of text that explains a failure, or its beginning, after lead;
// nothing if there is none. A dying Go program prints that line before its stacks.
func lastLines(text, lead string) string {
	text, _, _ = strings.Cut(text, "\ngoroutine ")
	lines := strings.Split(text, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if idle(line) {
			continue
		}
		if len(line) > longestWords {
			line = strings.ToValidUTF8(line[:longestWords], "") + "..."
		}
		return lead + monitor.Plain(line)
	}
	return ""
}

// idle reports whether a line of ssh or srun explains nothing: an empty line or a frame, a known
// line, or a consequence of an earlier line.
func idle(line string) bool {
	hasText := strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	return !hasText || strings.HasPrefix(line, "Warning: Permanently added") ||
		strings.HasSuffix(line, "lacks support for cpu binding") ||
		strings.HasSuffix(line, "UNKNOWN port 65535") || strings.HasPrefix(line, "stdio forwarding failed") ||
		strings.HasPrefix(line, "srun: error: ") && strings.Contains(line, "Exited with exit code") // known
}
