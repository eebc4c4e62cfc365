package monitor

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"gompi/internal/sockets"
)

// List returns this user's jobs on this machine, root's list all users', the oldest first. A job
// that does not answer takes answerTime. List removes sockets of gompiruns that have ended.
func List() []Job { return list(usersFolders(os.Geteuid() == 0), answerTime) }

// Own is List without other users' jobs.
func Own() []Job { return list(usersFolders(false), answerTime) }

// list returns the jobs in users' folders. Each may take as long as limit.
func list(folders map[string]int, limit time.Duration) []Job {
	var (
		mu   sync.Mutex
		jobs []Job
		all  sync.WaitGroup
	)
	for folder, user := range folders {
		names, _ := os.ReadDir(folder)
		for _, name := range names {
			id, ok := strings.CutSuffix(name.Name(), ending)
			if !ok || !isID(id) {
				continue
			}
			all.Go(func() {
				if j, ok := describe(filepath.Join(folder, name.Name()), id, user, limit); ok {
					mu.Lock()
					defer mu.Unlock()
					jobs = append(jobs, j)
				}
			})
		}
	}
	all.Wait()
	slices.SortFunc(jobs, func(a, b Job) int { return strings.Compare(a.ID, b.ID) })
	return jobs
}

// usersFolders returns the folders with sockets of this user's jobs, or also of others', and their
// users.
func usersFolders(others bool) map[string]int {
	users := []int{os.Geteuid()}
	if others {
		names, _ := filepath.Glob("/tmp/gompi-*")
		for _, name := range names {
			if user, err := strconv.Atoi(strings.TrimPrefix(name, "/tmp/gompi-")); err == nil {
				users = append(users, user)
			}
		}
	}
	found := map[string]int{}
	for _, user := range users {
		for _, folder := range folders(user) {
			if check(folder, user) == nil {
				found[folder] = user
			}
		}
	}
	return found
}

// isID reports whether text may be a job's id. Another user's id is only the name of a file.
func isID(text string) bool { return text != "" && strings.Trim(text, "0123456789abcdef-") == "" }

// describe asks the job behind a user's socket about itself. The second result is false if there
// is none. The id is the one in the socket's name, whatever the job says: its gompirun has chosen
// that name.
func describe(path, id string, user int, limit time.Duration) (Job, bool) {
	j := Job{ID: id, State: Silent, User: user, Socket: path}
	conn, pid, err := dial(path, user)
	if err != nil {
		if user == os.Geteuid() { // not for root, whom another user may mislead by a link
			removeStale(path, err)
		}
		return j, false
	}
	body, err := exchange(conn, "GET", "/job", limit)
	if err == nil {
		err = json.Unmarshal(body, &j)
	}
	j.ID, j.PID, j.User, j.Socket = id, pid, user, path
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		j.Err = fmt.Sprintf("it does not answer for %v", limit)
	case err != nil:
		return j, false // it is just ending
	}
	return j, true
}

// listenTime is how soon after making its socket a gompirun listens, however busy the machine is.
const listenTime = 10 * time.Second

// removeStale removes the socket of a gompirun that has ended.
func removeStale(path string, err error) {
	info, e := os.Lstat(path)
	if errors.Is(err, syscall.ECONNREFUSED) && e == nil && time.Since(info.ModTime()) > listenTime {
		os.Remove(path)
	}
}

// dial connects to the socket of a user's job. dial also returns the listening process.
func dial(path string, user int) (*net.UnixConn, int, error) {
	c, err := net.DialTimeout("unix", path, answerTime)
	if err != nil {
		return nil, 0, err
	}
	conn := c.(*net.UnixConn)
	owner, pid, err := sockets.Peer(conn)
	if err == nil && owner != user && owner != 0 {
		err = fmt.Errorf("%s belongs to user %d, want %d", path, owner, user)
	}
	if err != nil {
		conn.Close()
		return nil, 0, err
	}
	return conn, pid, nil
}

// exchange sends a request and returns the body of the answer, within limit.
func exchange(conn net.Conn, method, target string, limit time.Duration) ([]byte, error) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(limit))
	if err := writeRequest(conn, method, target); err != nil {
		return nil, err
	}
	return readResponse(conn)
}

// get asks a job, whose answer is JSON.
func get[T any](j *Job, method, target string) (v T, err error) {
	conn, _, err := dial(j.Socket, j.User)
	if err != nil {
		return v, err
	}
	body, err := exchange(conn, method, target, answerTime)
	if err == nil {
		err = json.Unmarshal(body, &v)
	}
	return v, j.late(err)
}

// late names the silent gompirun if err is an exceeded deadline, and otherwise returns err.
func (j *Job) late(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("gompirun, process %d, does not answer for %v", j.PID, answerTime)
	}
	return err
}

// Find asks for the place of a rank.
func (j *Job) Find(rank int) (Whereabouts, error) {
	w, err := get[Whereabouts](j, "GET", "/rank/"+strconv.Itoa(rank))
	if err == nil && w.Err != "" {
		err = errors.New(Plain(w.Err))
	}
	return w, err
}

// begin asks for an answer that comes in its time, as the job's end. Once the question has been
// noted, begin returns the reader of the answer.
func begin(conn net.Conn, target string) (io.Reader, error) {
	conn.SetDeadline(time.Now().Add(answerTime))
	defer conn.SetDeadline(time.Time{})
	if err := writeRequest(conn, "GET", target); err != nil {
		return nil, err
	}
	answer := bufio.NewReader(conn)
	_, err := readHead(answer, func(string) {})
	return answer, err
}

// Signal has the effect on the job of a signal to its gompirun, by a name in Signals. If the job
// ends, by the signal or by itself, Signal waits for that and describes the end; otherwise ended
// is false.
func (j *Job) Signal(name string) (e End, ended bool, err error) {
	conn, _, err := dial(j.Socket, j.User)
	if err != nil {
		return e, false, err
	}
	type result struct {
		body []byte
		err  error
	}
	defer conn.Close()
	answer, err := begin(conn, "/end") // before the signal ends the job
	if err != nil {
		return e, false, j.late(err)
	}
	over := make(chan result, 1)
	go func() { // until the job has ended, or this function returns
		body, err := readResponse(answer)
		over <- result{body, err}
	}()
	order, failed := get[Order](j, "POST", "/signal/"+name)
	limit := time.Duration(order.Limit * float64(time.Second))
	switch {
	case failed != nil:
		limit = time.Second // long enough to learn whether the job has ended by itself
	case order.Err != "":
		return e, false, errors.New(Plain(order.Err))
	case !order.Ends:
		return e, false, nil
	}
	select {
	case r := <-over:
		if r.err == nil {
			r.err = json.Unmarshal(r.body, &e)
		}
		if r.err == nil {
			return e, true, nil
		}
		return e, false, cmp.Or(failed, fmt.Errorf("gompirun has ended without an answer: %w", r.err))
	case <-time.After(limit):
		return e, false, cmp.Or(failed, fmt.Errorf("the job has not ended after %v", limit.Round(time.Second)))
	}
}

// Choose returns the wanted job: by the process id of its gompirun, by an id of its runs, or by a
// unique beginning or end of an id; the only job if wanted is "". The process id is tried first,
// because the kernel guarantees that it is unique among jobs that run. Among jobs with one id this user's is preferred:
// another user may have copied the id.
func Choose(jobs []Job, wanted string) (*Job, error) {
	var found []int
	for i, j := range slices.Backward(jobs) {
		if strconv.Itoa(j.PID) == wanted || j.hasID(is(wanted)) && j.User == os.Geteuid() {
			return &jobs[i], nil
		}
		if j.hasID(func(id string) bool { return strings.HasPrefix(id, wanted) || strings.HasSuffix(id, wanted) }) {
			found = append(found, i)
		}
	}
	same := slices.DeleteFunc(slices.Clone(found), func(i int) bool { return !jobs[i].hasID(is(wanted)) })
	if len(same) > 0 {
		found = same
	}
	switch {
	case len(found) == 1:
		return &jobs[found[0]], nil
	case len(jobs) == 0:
		return nil, errors.New("no gompirun of yours runs on this machine: type it where the job was started")
	case len(found) == 0:
		return nil, fmt.Errorf("%q: no gompirun of yours runs that on this machine; there are%s", wanted, Listed(jobs))
	case wanted == "":
		return nil, fmt.Errorf("%d jobs of yours run here: want one of%s", len(jobs), Listed(jobs))
	}
	return nil, fmt.Errorf("%q fits %d jobs: want one of%s", wanted, len(found), Listed(jobs))
}

func is(wanted string) func(id string) bool {
	return func(id string) bool { return id == wanted }
}

// hasID reports whether f is true for the id of a run of the job.
func (j *Job) hasID(f func(id string) bool) bool { return f(j.ID) || slices.ContainsFunc(j.Reruns, f) }

// Short returns the end of a job's id, which suffices for people because ids begin with the time.
func (j *Job) Short() string { return j.ID[max(0, len(j.ID)-8):] }

// Program returns the command lines.
func (j *Job) Program() string { return strings.Join(j.Programs, " : ") }

// mostListed is the most jobs that Listed names.
const mostListed = 20

// Listed names the latest jobs, each on a line that begins with a newline.
func Listed(jobs []Job) string {
	var b strings.Builder
	jobs = jobs[max(0, len(jobs)-mostListed):]
	for i := range jobs {
		j := &jobs[i]
		fmt.Fprintf(&b, "\n  %s: process %d, -np %d %.80q, for %v", j.Short(), j.PID, j.Size, j.Program(), age(j.Age))
		if j.User != os.Geteuid() {
			fmt.Fprintf(&b, ", of user %d", j.User)
		}
	}
	return b.String()
}

// Plain returns text without control characters, tabs, and other characters that move the cursor
// or turn the direction of writing: a terminal shows jobs of other users and words of other hosts.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
