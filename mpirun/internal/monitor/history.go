package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The history is a folder with two files for each of the latest jobs of a user, which nobody else
// may read: ID.json describes the job, as gompirun ps -json does, and ID.log has its last output.
const (
	mostJobs = 100
	saveTime = time.Second         // the end of a job waits no longer for a file system
	lostTime = 30 * 24 * time.Hour // after its last line the output of a job without a description is removed
)

// StateFolder returns the folder of the history, and makes it if its parents allow that: gompi in
// XDG_STATE_HOME, or in .local/state of the home folder.
func StateFolder() (string, error) {
	folder := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(folder) {
		home, err := os.UserHomeDir()
		if err == nil {
			_, err = os.Stat(home) // which is not made
		}
		if err != nil {
			return "", err
		}
		folder = filepath.Join(home, ".local/state")
	}
	folder = filepath.Join(folder, "gompi")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	return folder, check(folder, os.Geteuid())
}

// Save adds a job that is over to the history. An error is none of the job's.
func Save(j Job, output []byte) {
	saved := make(chan struct{})
	go func() { // until the files are written, or the process ends
		defer close(saved)
		folder, err := StateFolder()
		if err == nil {
			save(folder, j, output)
		}
	}()
	select {
	case <-saved:
	case <-time.After(saveTime):
	}
}

func save(folder string, j Job, output []byte) {
	put := func(ending string, content []byte) {
		f, err := os.OpenFile(filepath.Join(folder, j.ID+ending), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil { // else there is all output, of a detached job
			f.Write(content)
			f.Close()
		}
	}
	if text, err := json.Marshal(j); err == nil {
		put(".log", output)
		put(".json", text)
	}
	prune(folder)
}

// prune removes all jobs but the latest, and the output of detached jobs that have left no
// description: their gompirun was killed, or had GOMPI_HISTORY=0.
func prune(folder string) {
	all, _ := filepath.Glob(filepath.Join(folder, "*.json")) // sorted by time, as ids are
	for _, path := range all[:max(0, len(all)-mostJobs)] {
		os.Remove(path)
		os.Remove(strings.TrimSuffix(path, ".json") + ".log")
	}
	logs, _ := filepath.Glob(filepath.Join(folder, "*.log"))
	for _, path := range logs {
		_, described := slices.BinarySearch(all, strings.TrimSuffix(path, ".log")+".json")
		if info, err := os.Stat(path); !described && err == nil && time.Since(info.ModTime()) > lostTime {
			os.Remove(path)
		}
	}
}

// NewLog makes a file for the output of a detached job, whose id is yet unknown.
func NewLog() (*os.File, error) {
	folder, err := StateFolder()
	if err != nil {
		return nil, err
	}
	prune(folder)
	return os.CreateTemp(folder, "starting*.log")
}

// WithHistory adds this user's jobs that are over to jobs, the oldest first.
func WithHistory(jobs []Job) []Job {
	jobs = append(history(), jobs...)
	slices.SortStableFunc(jobs, func(a, b Job) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(jobs, func(a, b Job) bool { return a.ID == b.ID }) // one that has just ended
}

// Logs writes the last output of a job, and with follow its output until its end.
func (j *Job) Logs(w io.Writer, follow bool) error {
	if j.Log != "" {
		f, err := os.Open(j.Log)
		if err == nil {
			defer f.Close()
			_, err = io.Copy(w, f)
		}
		return err
	}
	conn, _, err := dial(j.Socket, j.User)
	var answer io.Reader
	if err == nil {
		defer conn.Close()
		answer, err = begin(conn, map[bool]string{false: "/output", true: "/output/follow"}[follow])
	}
	switch {
	case err == nil:
		_, err = io.Copy(w, answer)
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return j.late(err)
	}
	past := history()
	if i := slices.IndexFunc(past, func(o Job) bool { return o.ID == j.ID }); i >= 0 {
		return past[i].Logs(w, follow)
	}
	return fmt.Errorf("%s has ended: %w", j.Short(), err)
}

// history returns this user's jobs that are over, the oldest first.
func history() (jobs []Job) {
	folder, err := StateFolder()
	if err != nil {
		return nil
	}
	all, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	for _, path := range all {
		var j Job
		text, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(text, &j) == nil && isID(j.ID) {
			j.Log = strings.TrimSuffix(path, ".json") + ".log"
			jobs = append(jobs, j)
		}
	}
	return jobs
}
