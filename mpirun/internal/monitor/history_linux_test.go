package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestATailIsTheLatestOutput(t *testing.T) {
	var tail Tail
	var all []byte
	for n := range 300 {
		text := bytes.Repeat([]byte{'a' + byte(n%26)}, n*n%(3*tailSize))
		all = append(all, text...)
		tail.Write(text)
		if got, want := tail.Text(), all[max(0, len(all)-tailSize):]; !bytes.Equal(got, want) {
			t.Fatalf("after %d pieces: %d bytes, want %d", n+1, len(got), len(want))
		}
		from := int64(len(all) - len(text)/2)
		if got, end, _ := tail.since(from); end != int64(len(all)) ||
			!bytes.Equal(got, all[max(int(from), len(all)-tailSize):]) {
			t.Fatalf("after %d pieces: %d bytes of %d since %d", n+1, len(got), end, from)
		}
	}
}

// The history is of its user alone, and has the latest jobs.
func TestTheHistoryHasTheLatestJobs(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	id := func(n int) string { return fmt.Sprintf("01%06d", n) }
	folder, err := StateFolder()
	if err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(folder, id(mostJobs+1)+".log")
	if err := os.WriteFile(whole, []byte("all of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"001.log": lostTime + time.Hour, "002.log": lostTime - time.Hour} {
		path, at := filepath.Join(folder, name), time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range mostJobs + 3 {
		Save(Job{ID: id(n), PID: n + 1, State: Failed, Why: "rank 1", Status: 3}, fmt.Appendf(nil, "output %d", n))
	}
	jobs := WithHistory([]Job{{ID: id(5), State: Running}, {ID: "02"}, {ID: id(mostJobs), State: Running}})
	if len(jobs) != mostJobs+1 || jobs[0].ID != id(3) || jobs[2].State != Failed || jobs[mostJobs].ID != "02" {
		t.Fatalf("%d jobs, the first is %+v", len(jobs), jobs[0])
	}
	for n, want := range map[int]string{4: "output 4", mostJobs + 1: "all of it"} {
		var b strings.Builder
		j, err := Choose(jobs, id(n))
		if err == nil {
			err = j.Logs(&b, true)
		}
		if err != nil || b.String() != want || j.Why != "rank 1" {
			t.Errorf("job %d: %q, %v, want %q", n, b.String(), err, want)
		}
	}
	files, _ := os.ReadDir(folder)
	if len(files) != 2*mostJobs+1 || files[0].Name() != "002.log" {
		t.Errorf("%d files, want %d for jobs, and the output of one that may run", len(files), 2*mostJobs)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
	if text := Table(jobs, false, 200); !strings.Contains(text, " ago\n    rank 1\n") {
		t.Errorf("ps says\n%s", text)
	}
}

// A folder that others may enter, or that cannot be made, has no history.
func TestAFolderThatIsNotTheUsersHasNoHistory(t *testing.T) {
	for _, state := range []string{"/dev/null", t.TempDir()} {
		t.Setenv("XDG_STATE_HOME", state)
		os.Mkdir(filepath.Join(state, "gompi"), 0o755)
		os.Chmod(filepath.Join(state, "gompi"), 0o755)
		Save(Job{ID: "01"}, nil)
		if jobs := WithHistory(nil); len(jobs) != 0 {
			t.Errorf("%s: %+v", state, jobs)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", filepath.Join(t.TempDir(), "none"))
	if folder, err := StateFolder(); err == nil {
		t.Errorf("%s is made for a user without a home folder", folder)
	}
}

// A follower reads the output from its beginning to its end.
func TestOutputIsFollowed(t *testing.T) {
	dir := folder(t)
	t.Setenv("XDG_STATE_HOME", dir)
	k := newJob(t, dir, "a1", plainly)
	j := list(map[string]int{dir: os.Geteuid()}, limit)[0]
	fmt.Fprint(k.tail, "one\n")
	var now strings.Builder
	if err := j.Logs(&now, false); err != nil || now.String() != "one\n" {
		t.Errorf("%q, %v", now.String(), err)
	}
	got := make(lines, 1)
	done := make(chan error)
	go func() { done <- j.Logs(got, true) }()
	want := "one\n"
	for n := range 5 {
		if text := <-got; text != want {
			t.Fatalf("%q, want %q", text, want)
		}
		want = fmt.Sprintln("line", n)
		fmt.Fprint(k.tail, want)
	}
	k.End(End{})
	if text, err := <-got, <-done; text != want || err != nil {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	if err := j.Logs(got, true); err == nil || !strings.Contains(err.Error(), "a1 has ended") {
		t.Errorf("%v", err)
	}
	Save(Job{ID: "a1"}, []byte("past"))
	if err := j.Logs(got, true); err != nil || <-got != "past" {
		t.Errorf("%v, want the output of a job that has just ended", err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "ending"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // until l is closed
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			conn.Close()
		}
	}()
	j.Socket = l.Addr().String()
	if err := j.Logs(got, true); err != nil || <-got != "past" {
		t.Errorf("%v, want the output of a job that ends before it answers", err)
	}
}

// lines takes writes in pieces.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(slices.Clone(b))
	return len(b), nil
}
