package remote

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// sshFailed is the exit status of ssh when it is not that of the command.
const sshFailed = 255

// reason returns why a login has ended without becoming an agent: what ssh itself printed last, or
// how it ended, and then what the host printed: stderr, where a server's banner stands, too, or
// stdout.
func reason(via, how string, status int, stderr, stdout string) string {
	if status == sshFailed {
		own, others := split(stderr)
		if lastLines(own, "") == "" {
			own, others = stderr, "" // it is no ssh, or a new one: its own messages name the host, too
		}
		if last := lastLines(own, ""); last != "" {
			return withRemedy(last, own) + lastLines(others, "; the host says: ") + lastLines(stdout, "; the host says: ")
		}
	}
	return fmt.Sprintf("%s %s%s%s", via, how, lastLines(stderr, ": "), lastLines(stdout, "; the host says: "))
}

// byClient matches the lines of OpenSSH's client itself. Others are a banner, or what the host's
// shell and programs print.
var byClient = regexp.MustCompile(`^(ssh: |kex_exchange_identification: |ssh_exchange_identification: |banner exchange: |ssh_dispatch_run_fatal: |` +
	`channel \d+: open failed: |client_loop: |Connection (closed|reset|timed out|to )|Disconnected from |Received disconnect from |Timeout, server |` +
	`Unable to negotiate |Bad owner or permissions |Host key verification failed|No .* host key is known for |Too many authentication failures|` +
	`stdio forwarding failed|@@@|@ .* @$|IT IS POSSIBLE THAT |Someone could be eavesdropping |It is also possible that a host key |The fingerprint for the |` +
	`Please contact your system administrator|Add correct host key in |Offending .* key in |Host key for .* has changed |Warning: |SHA256:|remove with:|ssh-keygen -f )` +
	`|: Permission denied \(|: Too many authentication failures`)

// split parts what was printed on standard error in the lines of ssh's client, and others.
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

// withRemedy adds advice to the last line of what ssh's client printed, if that contains none.
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
		remedy += ": if it has been installed anew, remove that (" + remove + ") and log in by hand once; else another machine may answer in its place"
	case strings.Contains(last, "Host key verification failed"):
		remedy = "want its key in known_hosts: log in by hand once"
	case isDropped(stderr):
		remedy = "if it serves others, too many logins came at once: want a larger MaxStartups in its sshd_config"
	default:
		return last
	}
	return strings.TrimSuffix(last, ".") + "; " + remedy
}

// isDropped reports whether the server ended the connection before the login, as sshd does with
// some when too many come at once (MaxStartups), and with all when it is not to be logged in there.
func isDropped(stderr string) bool {
	own, _ := split(stderr)
	last := lastLines(own, "")
	return strings.Contains(last, "_exchange_identification: ") || strings.Contains(last, "Connection reset by ") || strings.HasPrefix(last, "Connection closed by ")
}

// longestWords is how much is shown of a line.
const longestWords = 300

// lastLines returns the last line of text that states why something failed, or its beginning, after
// lead; nothing if there is none. Where a Go program dies, that stands before its stacks.
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
		return lead + line
	}
	return ""
}

// idle reports whether a line of ssh or srun is one that states nothing of a failure: it is empty
// or a frame, or known, or follows from one before it.
func idle(line string) bool {
	hasText := strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	return !hasText || strings.HasPrefix(line, "Warning: Permanently added") || strings.HasSuffix(line, "lacks support for cpu binding") ||
		strings.HasSuffix(line, "UNKNOWN port 65535") || strings.HasPrefix(line, "stdio forwarding failed") ||
		strings.HasPrefix(line, "srun: error: ") && strings.Contains(line, "Exited with exit code") // which we know
}
