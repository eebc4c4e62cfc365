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

// cachePaths returns where a program with a checksum may be, or be put: the first that is possible
// is taken. bootstrap.sh uses the same folders.
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

// makeOwnFolder makes a folder of the cache, for what has one checksum.
func makeOwnFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkOwnFolders(dir)
}

// checkOwnFolders returns an error if a folder of the cache, or the one that it is in, is no folder
// of this user's that no other user can write.
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

// executable returns an error if a file that is there may not be executed, as on a file system that
// is mounted noexec.
func executable(path string) error {
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%s: execute: %w", path, err)
	}
	return nil
}

// keepPeriod is how often a job marks that it uses what is in the cache: far more often than a
// month, after which bootstrap.sh removes what is not used.
const keepPeriod = 24 * time.Hour

// KeepUsed notes in the cache that programs are used, those of them that are there, now and from
// then on until the process ends.
func KeepUsed(programs []string) {
	for {
		for _, path := range programs {
			markUsed(path)
		}
		time.Sleep(keepPeriod)
	}
}

// markUsed notes that a program is used, if it is in the cache.
func markUsed(path string) {
	dir := filepath.Dir(path)
	if filepath.Base(filepath.Dir(dir)) == cacheName() {
		now := time.Now()
		os.Chtimes(dir, now, now) // it may be another machine's, which this one only reads
	}
}

// cacheName is the name of this user's folder.
func cacheName() string { return "gompi-" + strconv.Itoa(os.Getuid()) }
