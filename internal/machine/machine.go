// Package machine says what the processors of this machine are good at: its profile. Processors
// differ in that so much that no one choice is right. On an Intel Xeon the kernel copies from one
// process to another faster than the two can through memory that they share; on an AMD EPYC it is
// the other way round.
//
// A profile is settings for GOMPI_TUNE. gompi-bench -profile measures one and keeps it in a file of
// the user's cache, named by processor, kernel and whether the machine is virtual: what was measured
// elsewhere is not taken for this machine's. Without such a file a built-in one serves.
package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// A Profile is what one kind of processor is good at.
type Profile struct {
	Processor string // "GenuineIntel 6/143, 2048 KiB of second-level cache, virtual"
	Settings  string // for GOMPI_TUNE; "" for its defaults
	File      string // that it was read from; "" for a built-in one
}

// Never are settings by which no message is read.
const Never = "shm.read=1024g"

// Reads reports whether messages of some lengths are to be read where they lie.
func (p *Profile) Reads() bool {
	return strings.Contains(p.Settings, "shm.read=") && p.Settings != Never
}

// builtIn are the profiles of processors that were measured, by their names' beginnings and the
// least second-level cache in KiB.
//
// Intel Xeon with 2 MiB of second-level cache, two virtual processors: from process to process the
// kernel copies 64 KiB in 3.1 us and 1 MiB in 51; a ring of the best shape takes 5.5 and 75, and
// ours took 7.0 and 90. At 4 MiB they are equal, at 64 MiB the ring wins. Messages were not timed.
//
// AMD EPYC, two virtual processors: messages that are read take 3 to 4 times as long as through the
// ring (64 KiB 10.5 and 3.2 us, 1 MiB 101 and 33): the defaults.
var builtIn = []struct {
	begins   string
	cache    int
	settings string
}{
	{"GenuineIntel 6/", 2048, "shm.read=32k;shm.read.below=8m"},
}

// Processor names the processor as a Profile does.
func Processor() string { return identity().String() }

// None is the name of a profile that sets nothing.
const None = "none"

// Read returns a profile: of the name of a file, or None; or for "" this machine's. It costs a look
// at one file. With an error, which says that the file cannot be read, it returns the built-in
// profile; a file that was not named may be missing.
func Read(name string) (Profile, error) {
	p := profile(identity())
	if name == None {
		return Profile{Processor: p.Processor}, nil
	}
	file, err := name, error(nil)
	if name == "" {
		if file, err = File(); err != nil {
			return p, nil // no home: nothing was kept
		}
	}
	data, err := os.ReadFile(file)
	if name == "" && errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.Settings, p.File = settings(string(data)), file
	return p, nil
}

// profile returns the built-in profile of a processor.
func profile(id id) Profile {
	p := Profile{Processor: id.String()}
	for _, b := range builtIn {
		if strings.HasPrefix(p.Processor, b.begins) && id.cache >= b.cache {
			p.Settings = b.settings
		}
	}
	return p
}

// settings returns the lines of a file without comments.
func settings(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, ";")
}

// Keep keeps settings as this machine's profile and returns the name of the file.
func Keep(settings string) (string, error) {
	file, err := File()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	text := fmt.Sprintf("# What %s is good at, as gompi-bench -profile has measured it.\n%s\n", identity(), settings)
	draft := fmt.Sprintf("%s.%d", file, os.Getpid()) // a job that starts meanwhile reads a whole file
	if err := os.WriteFile(draft, []byte(text), 0o644); err != nil {
		return "", err
	}
	return file, os.Rename(draft, file)
}

// File returns where this machine's profile is kept. It fails where a user has no cache folder.
func File() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	plain := func(r rune) rune {
		if strings.ContainsRune(",/ ", r) {
			return '-'
		}
		return r
	}
	return filepath.Join(dir, "gompi", "profile", strings.Map(plain, identity().String()+" "+kernel())), nil
}

// An id is what a kind of processor is known by.
type id struct {
	vendor        string // "" if this is no amd64
	family, model int
	cache         int // KiB of the second-level cache
	virtual       bool
}

func (i id) String() string {
	s := fmt.Sprintf("%s %d/%d, %d KiB of second-level cache", cmp.Or(i.vendor, runtime.GOARCH), i.family, i.model, i.cache)
	if i.virtual {
		s += ", virtual"
	}
	return s
}
