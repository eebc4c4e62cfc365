// Package machine says what the processors of this machine are good at: its profile. Processors
// differ in that so much that no one choice is right. On an Intel Xeon the kernel copies from one
// process to another faster than the two can through memory that they share; on an AMD EPYC it is
// the other way round.
//
// gompi-bench -profile measures a profile and keeps it in a file of the user's cache, named by
// processor, kernel and whether the machine is virtual: what was measured elsewhere is not taken
// for this machine's. Without such a file a built-in profile serves.
package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"gompi/internal/env"
)

// A Profile is what one kind of processor is good at.
type Profile struct {
	Processor string // "GenuineIntel 6/143, 2048 KiB of second-level cache, virtual"
	File      string // that was read, or to be; "" for a built-in profile
	Reads     Range  // bytes of the messages that are read where they lie
}

// A Range is of the numbers from From up to, and without, Below; 0 there is no end. The zero Range
// is empty.
type Range struct{ From, Below int64 }

// Empty reports whether r has no numbers.
func (r Range) Empty() bool { return r.From == 0 }

// String returns r as a profile's file and GOMPI_TUNE have it.
func (r Range) String() string {
	switch {
	case r.Empty():
		return "shm.read=never"
	case r.Below == 0:
		return "shm.read=" + size(r.From)
	}
	return "shm.read=" + size(r.From) + ";shm.read.below=" + size(r.Below)
}

// builtIn are the profiles of processors that were measured, by vendor, family and models.
//
// Intel Xeon, Sapphire and Emerald Rapids (two virtual processors, 2 MiB of second-level cache for
// each core): from process to process the kernel copies 64 KiB in 3.1 us and 1 MiB in 51; a ring of
// the best shape takes 5.5 and 75, and ours took 7.0 and 90. At 4 MiB they are equal, at 64 MiB the
// ring wins. Messages were not timed.
//
// AMD EPYC (two virtual processors): messages that are read take 2 to 4 times as long as through
// the ring (128 KiB 15 and 7 us, 1 MiB 102 and 32).
var builtIn = []struct {
	vendor string
	family int
	models []int
	reads  Range
}{
	{"GenuineIntel", 6, []int{143, 207}, Range{32 << 10, 8 << 20}},
}

// None is the name of a profile that says nothing.
const None = "none"

// Processor names the processor as a Profile does.
func Processor() string { return identity().String() }

// most bounds what is read of a file: a profile has some lines.
const most = 4 << 10

// Read returns a profile: of the name of a file, or None; or for "" this machine's. It costs a look
// at one file. With an error, which says what is wrong with the file, it returns the built-in
// profile. A file that was not named may be missing.
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
	data, err := readBounded(file)
	if name == "" && errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	p.File = file
	if err != nil {
		return p, err
	}
	reads, err := parse(data)
	if err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	p.Reads = reads
	return p, nil
}

func readBounded(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data := make([]byte, most+1)
	n, err := f.Read(data)
	if err != nil && err != io.EOF {
		return "", err
	}
	if n > most {
		return "", fmt.Errorf("%s: longer than %d bytes: no profile", file, most)
	}
	return string(data[:n]), nil
}

// profile returns the built-in profile of a processor.
func profile(i id) Profile {
	p := Profile{Processor: i.String()}
	for _, b := range builtIn {
		if b.vendor == i.vendor && b.family == i.family && slices.Contains(b.models, i.model) {
			p.Reads = b.reads
		}
	}
	return p
}

// parse reads the lines of a file: settings, with ";" or an end of line between them, and comments.
func parse(text string) (r Range, err error) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for item := range strings.SplitSeq(line, ";") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			name, value, _ := strings.Cut(item, "=")
			name, value = strings.TrimSpace(name), strings.TrimSpace(value)
			switch {
			case name == "shm.read" && value == "never":
				r.From = 0
			case name == "shm.read":
				r.From, err = bytes(value)
			case name == "shm.read.below":
				r.Below, err = bytes(value)
			default:
				err = fmt.Errorf("%.40q: want shm.read or shm.read.below", name)
			}
			if err != nil {
				return Range{}, err
			}
		}
	}
	return r, nil
}

// bytes reads a size, at least 1.
func bytes(s string) (int64, error) {
	n, ok := env.ParseBytes(s)
	if !ok || n == 0 {
		return 0, fmt.Errorf("%.40q: want a number of bytes such as 16384, 64k or 8m, or shm.read=never", s)
	}
	return n, nil
}

// size is the reverse of bytes.
func size(n int64) string {
	i := 0
	for ; n%1024 == 0 && i < 3; i++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + [...]string{"", "k", "m", "g"}[i]
}

// Keep keeps r as this machine's profile and returns the name of the file.
func Keep(r Range) (string, error) {
	file, err := File()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	text := fmt.Sprintf("# What %s is good at, as gompi-bench -profile has measured it.\n%s\n", identity(), r)
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
	i := identity()
	name := fmt.Sprintf("%s-%d-%d-%s", cmp.Or(i.vendor, runtime.GOARCH), i.family, i.model, kernel())
	if i.virtual {
		name += "-virtual"
	}
	return filepath.Join(dir, "gompi", "profile", name), nil
}

// An id is what a kind of processor is known by.
type id struct {
	vendor        string // "" if this is no amd64
	family, model int
	cache         int // KiB of the second-level cache of the processor that was asked
	virtual       bool
}

func (i id) String() string {
	s := fmt.Sprintf("%s %d/%d, %d KiB of second-level cache", cmp.Or(i.vendor, runtime.GOARCH), i.family, i.model, i.cache)
	if i.virtual {
		s += ", virtual"
	}
	return s
}
