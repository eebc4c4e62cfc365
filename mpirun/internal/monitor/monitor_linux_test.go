package monitor

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/stress"
)

// limit bounds every wait for an event.
const limit = time.Minute

// A fakeJob answers questions until it is told to end.
type fakeJob struct {
	*Server
	path    string
	signals chan syscall.Signal
}

var described = Job{ID: "a1", State: Running, Size: 2, Programs: []string{`./x "y"`}, Hosts: []string{"h"},
	Lines: []string{},
	Ranks: []Rank{{Rank: 1, Host: "h", PID: 7, Doing: "is in no call", CPU: 1.5},
		{Rank: 0, Host: "h", Counts: &Counts{Calls: 3}}}}

// newJob returns a job with a socket in folder, on the listener that wrap makes of it.
func newJob(t *testing.T, folder, id string, wrap func(net.Listener) net.Listener) *fakeJob {
	t.Helper()
	path := filepath.Join(folder, id+ending)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	k := &fakeJob{serve(wrap(l), path, &Tail{}), path, make(chan syscall.Signal, 1)}
	go func() {
		for {
			select {
			case q := <-k.Questions():
				switch q := q.(type) {
				case Describe:
					q.Answer(described)
				case WhereIs:
					q.Answer(Whereabouts{PID: q.Rank + 1})
				case Signal:
					q.Answer(Order{Ends: q.Signal == syscall.SIGTERM, Limit: limit.Seconds()})
					k.signals <- q.Signal
				}
			case <-k.ended:
				return
			}
		}
	}()
	return k
}

func plainly(l net.Listener) net.Listener { return l }

// folder returns a folder as Serve makes it. Its name is short: sockets' names have at most 107
// bytes.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gompi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestJobsAnswerAndEnd(t *testing.T) {
	dir := folder(t)
	k := newJob(t, dir, "a1", plainly)
	jobs := list(map[string]int{dir: os.Geteuid()}, limit)
	want := described
	want.PID, want.User, want.Socket = os.Getpid(), os.Geteuid(), k.path
	if len(jobs) != 1 || !reflect.DeepEqual(jobs[0], want) {
		t.Fatalf("%+v, want %+v", jobs, want)
	}
	j := &jobs[0]
	if w, err := j.Find(6); err != nil || w.PID != 7 {
		t.Errorf("%+v, %v; want a process", w, err)
	}
	if _, ended, err := j.Signal("USR1"); ended || err != nil || <-k.signals != syscall.SIGUSR1 {
		t.Errorf("%v, %v; want that USR1 has come", ended, err)
	}
	go func() {
		<-k.signals
		k.End(End{Status: 143, LastWords: "ended"})
	}()
	if e, ended, err := j.Signal("TERM"); !ended || err != nil || e.Status != 143 || e.LastWords != "ended" {
		t.Errorf("%+v, %v, %v; want how the job has ended", e, ended, err)
	}
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("%v is left", names)
	}
}

// An asker that waits for the job's end and hangs up is forgotten.
func TestAnAskerThatHangsUpIsForgotten(t *testing.T) {
	k := newJob(t, folder(t), "a1", plainly)
	defer k.End(End{})
	for range 3 {
		conn, _, err := dial(k.path, os.Geteuid())
		if err == nil {
			_, err = begin(conn, "/end")
		}
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	forgotten := make(chan struct{})
	go func() { // until all that wait are answered or forgotten
		k.owed.Wait()
		close(forgotten)
	}()
	select {
	case <-forgotten:
	case <-time.After(limit):
		t.Error("askers that have hung up are waited for")
	}
}

// A job that ends before it takes the order has ended all the same.
func TestAnOrderThatComesTooLate(t *testing.T) {
	path := filepath.Join(folder(t), "a1"+ending)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(l, path, nil)
	go func() {
		<-s.Questions() // and no answer
		s.End(End{Status: 7})
	}()
	j := Job{Socket: path, User: os.Geteuid()}
	if e, ended, err := j.Signal("TERM"); !ended || err != nil || e.Status != 7 {
		t.Errorf("%+v, %v, %v; want that it has ended with status 7", e, ended, err)
	}
}

// The process may end once End has returned: the client that ordered the end has its answer by
// then.
func TestAnOrderIsAnsweredBeforeTheEnd(t *testing.T) {
	for range 50 {
		k := newJob(t, folder(t), "a1", plainly)
		conn, err := net.Dial("unix", k.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeRequest(conn, "POST", "/signal/TERM"); err != nil {
			t.Fatal(err)
		}
		<-k.signals
		k.End(End{Status: 143})
		raw, err := conn.(*net.UnixConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, mostRequest)
		raw.Read(func(fd uintptr) bool { // the bytes that have come by now
			n, _ := unix.Read(int(fd), answer)
			answer = answer[:max(n, 0)]
			return true
		})
		conn.Close()
		if !strings.Contains(string(answer), `"ends":true`) {
			t.Fatalf("%q: want that the order ends the job", answer)
		}
	}
}

// Any request is answered, or not, and does no harm.
func TestRequests(t *testing.T) {
	dir := folder(t)
	k := newJob(t, dir, "a1", plainly)
	defer k.End(End{})
	const end = " HTTP/1.1\r\nHost: x\r\n\r\n"
	for request, want := range map[string]string{
		"GET /job" + end:           `"state":"running"`,
		"GET /job HTTP/1.0\n\n":    `"state":"running"`,
		"GET /metrics" + end:       `gompi_job_ranks{job="a1"} 2`,
		"GET /rank/3" + end:        `"pid":4`,
		"GET /rank/-1" + end:       `"-1": want a rank`,
		"POST /signal/NONE" + end:  `"NONE": want TERM`,
		"GET /signal/TERM" + end:   "want GET /job",
		"GET /x" + end:             "404 Not Found",
		"GET /job":                 "",
		"\r\n\r\n":                 "",
		"x y z\r\n\r\n":            "",
		strings.Repeat("x", 10000): "",
	} {
		conn, err := net.Dial("unix", k.path)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(limit))
		io.WriteString(conn, request)
		conn.(*net.UnixConn).CloseWrite()
		answer, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(answer), want) ||
			want == "" && len(answer) > 0 {
			t.Errorf("%.40q: %q, %v; want %q", request, answer, err, want)
		}
		conn.Close()
	}
}

func TestResponses(t *testing.T) {
	for response, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab": "",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab": "2 bytes of 3 have arrived",
		"HTTP/1.1 410 Gone\r\ncontent-length:1\r\n\r\na": `it answers "a"`,
		"HTTP/1.1 200 OK": "the head of the message: unexpected EOF",
		"":                "the head of the message: unexpected EOF",
	} {
		body, err := readResponse(strings.NewReader(response))
		if want == "" && (err != nil || string(body) != "ab") || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: %q, %v; want %q", response, body, err, want)
		}
	}
}

// A gompirun that is gone has left a socket, which is removed, unless it may be about to listen.
func TestSocketsOfTheGoneAreRemoved(t *testing.T) {
	dir := folder(t)
	for _, name := range []string{"01d", "1e3"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name+ending), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	long := time.Now().Add(-2 * listenTime)
	if err := os.Chtimes(filepath.Join(dir, "01d"+ending), long, long); err != nil {
		t.Fatal(err)
	}
	if jobs := list(map[string]int{dir: os.Geteuid()}, limit); len(jobs) > 0 {
		t.Errorf("%+v, want no job", jobs)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 || names[0].Name() != "1e3"+ending {
		t.Errorf("%v is left, want what may be a gompirun that starts", names)
	}
}

// A job's own words about its id do not make it another job, nor does a file's invalid name.
func TestAJobIsWhatItsSocketIsCalled(t *testing.T) {
	dir := folder(t)
	for _, id := range []string{"b2", "\x1b[2J", "a.b"} { // of a job that calls itself a1
		k := newJob(t, dir, id, plainly)
		defer k.End(End{})
	}
	if jobs := list(map[string]int{dir: os.Geteuid()}, limit); len(jobs) != 1 || jobs[0].ID != "b2" ||
		jobs[0].State != Running {
		t.Errorf("%+v, want the job b2 alone", jobs)
	}
}

// A gompirun that is stopped is listed, with its process.
func TestAJobThatDoesNotAnswerIsListed(t *testing.T) {
	dir := folder(t)
	l, err := net.Listen("unix", filepath.Join(dir, "b2"+ending))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	jobs := list(map[string]int{dir: os.Geteuid()}, 10*time.Millisecond)
	if len(jobs) != 1 || jobs[0].State != Silent || jobs[0].ID != "b2" || jobs[0].PID != os.Getpid() {
		t.Errorf("%+v, want a silent job", jobs)
	}
}

// A server continues after errors, as when descriptors are exhausted for a while.
func TestAServerOutlivesErrors(t *testing.T) {
	dir := folder(t)
	k := newJob(t, dir, "c3", func(l net.Listener) net.Listener {
		tired := &stress.Exhausted{Listener: l}
		tired.Left.Store(1)
		return tired
	})
	defer k.End(End{})
	if jobs := list(map[string]int{dir: os.Geteuid()}, limit); len(jobs) != 1 || jobs[0].State != Running {
		t.Errorf("%+v, want an answer", jobs)
	}
}

// asNobody runs f in a thread that is another user's, as far as the kernel is concerned.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody, same = 65534, ^uintptr(0)
	// The system calls themselves change this thread alone.
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, nobody, same); e != 0 {
		t.Fatal(e)
	}
	f()
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, 0, same); e != 0 {
		t.Fatal(e)
	}
}

// connect returns a descriptor of a connection.
func connect(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	}
	return fd, err
}

// The folder keeps other users out, and if it did not, they got no answer.
func TestOtherUsersGetNoAnswer(t *testing.T) {
	dir := folder(t)
	k := newJob(t, dir, "d4", plainly)
	defer k.End(End{})
	asNobody(t, func() {
		fd, err := connect(k.path)
		unix.Close(fd)
		if err != unix.EACCES {
			t.Errorf("%v, want %v", err, unix.EACCES)
		}
	})
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(k.path, 0o777)); err != nil {
		t.Fatal(err)
	}
	for _, other := range []bool{false, true} {
		var fd int
		var err error
		if other {
			asNobody(t, func() { fd, err = connect(k.path) })
		} else {
			fd, err = connect(k.path)
		}
		if err != nil {
			t.Fatal(err)
		}
		unix.Write(fd, []byte("GET /job HTTP/1.1\r\n\r\n")) // or it is closed already
		n, err := unix.Read(fd, make([]byte, 100))
		unix.Close(fd)
		if answered := n > 0; answered == other {
			t.Errorf("another user %v: %d bytes have come, %v", other, n, err)
		}
	}
}

// A listener in a user's folder must be the user's, and so must the folder.
func TestFoldersAndSocketsOfOthersAreNotUsed(t *testing.T) {
	dir := folder(t)
	own := os.Geteuid()
	if err := check(dir, own); err != nil {
		t.Errorf("%v, want that it is used", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{link, filepath.Join(dir, "none")} {
		if check(wrong, own) == nil {
			t.Errorf("%s is used", wrong)
		}
	}
	k := newJob(t, dir, "e5", plainly)
	defer k.End(End{})
	if _, _, err := dial(k.path, own+1); err == nil && own != 0 {
		t.Error("a socket of this user's is taken for another's")
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if check(dir, own) == nil {
		t.Error("a folder of mode 0750 is used")
	}
	asNobody(t, func() {})
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 65534, -1)); err != nil {
		t.Fatal(err)
	}
	if check(dir, own) == nil || check(dir, 65534) != nil {
		t.Error("a folder is used that is another user's, or not by its own")
	}
}

func TestAJobIsChosenByItsIdOrItsProcess(t *testing.T) {
	jobs := []Job{{ID: "0197-aa11", PID: 5}, {ID: "0197-bb11", PID: 6}}
	for wanted, want := range map[string]string{
		"0197-aa11": "0197-aa11", "bb11": "0197-bb11", "6": "0197-bb11", "0197-b": "0197-bb11",
		"11": `"11" fits 2 jobs`, "": "2 jobs of yours run here: want one of",
		"x": `"x": no gompirun of yours runs that`,
	} {
		j, err := Choose(jobs, wanted)
		if err == nil && j.ID != want || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %s", wanted, j, err, want)
		}
	}
	own, other := os.Geteuid(), os.Geteuid()+1
	jobs = []Job{{ID: "aa-bb", PID: 7, User: other}, {ID: "aa-bb", PID: 5, User: own}, {ID: "5", PID: 8, User: other},
		{ID: "cc", PID: 9, User: other}, {ID: "cc", PID: 10, User: other + 1}}
	for wanted, want := range map[string]int{"aa-bb": 5, "5": 5, "7": 7, "bb": 0, "cc": 0} {
		j, err := Choose(jobs, wanted)
		if err == nil && j.PID != want || err != nil && (want != 0 || !strings.Contains(err.Error(), "of user")) {
			t.Errorf("%q: %+v, %v, want process %d", wanted, j, err, want)
		}
	}
	jobs = []Job{
		{ID: "aa-1", Reruns: []string{"aa-2", "bb-3"}, PID: 5, User: own}, {ID: "aa-2", PID: 6, User: other},
		{ID: "dd", Reruns: []string{"cc"}, PID: 7, User: other},
		{ID: "ee", Reruns: []string{"cc"}, PID: 8, User: other},
	}
	for wanted, want := range map[string]int{"aa-2": 5, "bb": 5, "3": 5, "aa": 0, "cc": 0} {
		j, err := Choose(jobs, wanted)
		if err == nil && j.PID != want || err != nil && want != 0 {
			t.Errorf("%q: %+v, %v, want process %d", wanted, j, err, want)
		}
	}
	if _, err := Choose(nil, ""); err == nil {
		t.Error("a job is chosen of none")
	}
}

func TestMetrics(t *testing.T) {
	text := string(Metrics([]Job{described, {ID: "b2", State: Stalled}}))
	for _, want := range []string{
		`gompi_job_info{job="a1",pid="0",program="./x \"y\""} 1` + "\n",
		`gompi_job_state{job="b2",state="stalled"} 1` + "\n" + `gompi_job_state{job="b2",state="ending"} 0` + "\n",
		`gompi_rank_cpu_seconds_total{job="a1",rank="1",host="h"} 1.5` + "\n",
		"# TYPE gompi_rank_calls_total counter\n" + `gompi_rank_calls_total{job="a1",rank="0",host="h"} 3` + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nwant in it %s", text, want)
		}
	}
	if n := strings.Count(text, "# TYPE gompi_job_ranks"); n != 1 {
		t.Errorf("gompi_job_ranks is introduced %d times, want once", n)
	}
	if without := string(Metrics([]Job{{ID: "b2"}})); strings.Contains(without, "gompi_rank") {
		t.Errorf("%s\nof a job without ranks", without)
	}
}

// A Job survives its JSON unchanged.
func TestAJobIsTheSameInJSON(t *testing.T) {
	text, err := json.Marshal(described)
	var back Job
	if err := errors.Join(err, json.Unmarshal(text, &back)); err != nil || !reflect.DeepEqual(back, described) {
		t.Errorf("%s: %v, %+v; want %+v", text, err, back, described)
	}
}
