// Package machine says what the processors of this machine are good at: its profile. Processors
// differ in that so much that no one choice is right. On an Intel Xeon the kernel copies from one
// process to another faster than the two can through memory that they share; on an AMD EPYC it is
// the other way round.
//
// gompi-bench profile measures a profile and keeps it in a file of the user's cache, named by
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
	"strings"
	"syscall"

	"gompi/internal/atomicfile"
)

// A Profile is what one kind of processor is good at.
type Profile struct {
	Processor string // "GenuineIntel 6/143, 2048 KiB of second-level cache, virtual"
	File      string // that was read, or to be; "" for a built-in profile
	Settings  Settings
}

// builtIn are the profiles of processors that were measured, by vendor, families and models; of all
// models where none is named.
//
// Intel Xeon, Sapphire and Emerald Rapids (two virtual processors, 2 MiB of second-level cache for
// each core): from process to process the kernel copies 64 KiB in 3.1 us and 1 MiB in 51; a ring of
// the best shape takes 5.5 and 75, and ours took 7.0 and 90. 16 KiB take 3.8 us through the ring
// and 2.3 so, back and forth at once 4.1 and 2.4, in an allreduce 4.8 and 3.2, a bcast 3.2 and 1.6;
// one after another 1.3 and 1.7, and 12 KiB .9 and 1.5. With both ends copying, longer messages are
// read faster, too (the ring and the kernel, ms: 8 MiB .79 and .46, 64 MiB 9.0 and 7.6). In
// collectives lines that are only stored cost what they push out of the second-level cache (np=2,
// plain and non-temporal stores, us: memory from Alloc, allreduce of 1 MiB 46 and 47, of 2 MiB 150
// and 107, allgather of 512 KiB 37 and 37, of 1 MiB 122 and 101, of 4 MiB 594 and 513; other
// memory, of 1 MiB 168 and 141), and there are more such caches where there are more ranks (np=16,
// allgather of 16 KiB 54 and 74). Copies alone were timed through rings of several shapes, with 128
// to 512 KiB in flight, in chunks of 16 to 64 KiB, being best: 64 KiB in 8 chunks of 16 KiB 5.5 us,
// in 2 of 4 KiB 14.6; non-temporal stores lost in every shape (64 KiB 7.5 us, 1 MiB 112). Messages
// of 64 KiB take 8.6 us through the ring, and 4.3 where the receiver reads them.
//
// AMD EPYC (two virtual processors): messages that are read take 2 to 4 times as long as through
// the ring (128 KiB 15 and 7 us, 1 MiB 102 and 32). The ring is best larger than the second-level
// cache (4 MiB: 170 us, around 256 KiB 488), and non-temporal stores win while the two share no
// cache. That is what every processor is taken for of which nothing is known. On family 26, Zen 5,
// the string instruction takes lines over without fetching them, and so is as fast as plain stores
// near and as non-temporal ones far (half a round trip through a bare ring with plain, non-temporal
// and string copies, us: near 16 KiB .47 1.1 .37, 64 KiB 1.6 3.0 1.2, 1 MiB 19.7 41 19.1; far 2 KiB
// .57 .51 .45, 16 KiB 2.1 1.3 1.2, 64 KiB 4.4 3.1 3.0, 1 MiB 50 31 29).
var builtIn = []struct {
	vendor           string
	families, models []int
	settings         Settings
}{
	{"GenuineIntel", []int{6}, []int{143, 207}, Settings{
		ReadFrom: 16 << 10, ReadBelow: Never, RingChunk: 16 << 10, RingBytes: 256 << 10, NonTemporal: Never,
		Around: 2 << 20, AroundOwn: 1 << 20,
	}},
	{"AuthenticAMD", []int{25}, nil, Settings{
		ReadFrom: Never, RingChunk: 32 << 10, RingBytes: 2 << 20, NonTemporal: 8 << 10,
	}},
	{"AuthenticAMD", []int{26}, nil, Settings{
		ReadFrom: Never, RingChunk: 32 << 10, RingBytes: 2 << 20, NonTemporal: Never, String: 2 << 10,
	}},
}

// None is the name of a profile that says nothing.
const None = "none"

// Processor names the processor as a Profile does.
func Processor() string { return identity().String() }

// most bounds what is read of a file: a profile has some dozen lines.
const most = 8 << 10

// Read returns a profile: of the name of a file, or None; or for "" this machine's. It costs a look
// at one file. What the file does not set is as in the built-in profile. With an error, which says
// what is wrong with the file, it returns the built-in profile. A file that was not named may be
// missing, or where this user cannot look.
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
	if name == "" && isAway(err) {
		return p, nil
	}
	p.File = file
	if err != nil {
		return p, err
	}
	settings, err := parse(data)
	if err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	p.Settings = settings.over(p.Settings)
	return p, nil
}

// isAway reports whether an error means that there is no file, or none for this user: HOME may be
// that of another one, or no folder.
func isAway(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)
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
		known := b.models == nil || slices.Contains(b.models, i.model)
		if b.vendor == i.vendor && slices.Contains(b.families, i.family) && known {
			p.Settings = b.settings
		}
	}
	return p
}

// CheckKeep returns what would keep Keep from writing the file.
func CheckKeep() error {
	file, err := File()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return atomicfile.Check(file)
}

// Keep keeps s as this machine's profile, with what was measured as a comment, and returns the name
// of the file.
func Keep(s Settings, measured string) (string, error) {
	file, err := File()
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("# What %s is good at, as gompi-bench profile has measured it.\n", identity())
	for line := range strings.Lines(measured) {
		text += "# " + line
	}
	for item := range strings.SplitSeq(s.String(), ";") {
		text += item + "\n"
	}
	return file, atomicfile.Write(filepath.Dir(file), atomicfile.File{Name: filepath.Base(file), Write: func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}})
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
