package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cachePaths returns the possible paths of a program with a checksum; the first usable one is
// taken. bootstrap.sh uses the same folders.
func cachePaths(sum, name string) []string {
	caches := []string{os.Getenv("XDG_CACHE_HOME"), os.TempDir()}
	if home, err := os.UserHomeDir(); err == nil && caches[0] == "" {
		caches[0] = filepath.Join(home, ".cache")
	}
	var paths []string
	for _, dir := range caches {
		if dir != "" {
			paths = append(paths, filepath.Join(dir, cacheName(), sum, name))
		}
	}
	return paths
}

// makeOwnFolder makes a folder of the cache, for the files of one checksum.
func makeOwnFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkOwnFolders(dir)
}

// checkOwnFolders returns an error unless a folder of the cache and its parent belong to this
// user and no other user can write them.
func checkOwnFolders(dir string) error {
	return errors.Join(checkOwn(filepath.Dir(dir)), checkOwn(dir))
}

func checkOwn(path string) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.IsDir():
		return fmt.Errorf("%s is no folder", path)
	case !ok || int(sys.Uid) != os.Getuid():
		return fmt.Errorf("%s is another user's", path)
	case st.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write %s (%v): want chmod go-w", path, st.Mode().Perm())
	}
	return nil
}

// executable returns an error if a file may not be executed, as on file systems mounted noexec.
func executable(path string) error {
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%s: execute: %w", path, err)
	}
	return nil
}

// keepPeriod is the period with which a job marks its files in the cache as used. bootstrap.sh
// removes files that have not been used for a month.
const keepPeriod = 24 * time.Hour

// KeepUsed marks programs in the cache as used, at once and then until the process ends.
func KeepUsed(programs []string) {
	for {
		for _, path := range programs {
			markUsed(path)
		}
		time.Sleep(keepPeriod)
	}
}

// markUsed marks a program in the cache as used.
func markUsed(path string) {
	dir := filepath.Dir(path)
	if filepath.Base(filepath.Dir(dir)) == cacheName() {
		now := time.Now()
		os.Chtimes(dir, now, now) // may fail: this machine may only read another's cache
	}
}

// cacheName is the name of this user's folder.
func cacheName() string { return "gompi-" + strconv.Itoa(os.Getuid()) }
