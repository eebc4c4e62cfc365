package preload

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
			paths = append(paths, filepath.Join(dir, "gompi-"+strconv.Itoa(os.Getuid()), sum, name))
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
// of this user's that nobody else can write.
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

// markUsed notes in the cache that a program is used: what is not for a month, bootstrap.sh
// removes.
func markUsed(path string) {
	now := time.Now()
	os.Chtimes(filepath.Dir(path), now, now) // it may be another machine's, which this one only reads
}
