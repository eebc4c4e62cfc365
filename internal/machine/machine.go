// Package machine has facts of the machine that a process runs on: the profile of its processors,
// the control groups that limit the process (cgroup.go), and the InfiniBand and RoCE devices near
// some processors (rdma.go).
//
// A profile has the copy methods at which processors are good. They differ so much that no single
// choice suits all. On an Intel Xeon the kernel copies from one process to another faster than the
// two processes can through shared memory; on an AMD EPYC shared memory is faster.
//
// gompi-bench profile measures a profile and stores it in a file of the user's cache. The file's
// name has the processor, the kernel and whether the machine is virtual, so that a shared home
// serves different machines. Without such a file a built-in profile serves.
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

// A Profile holds the settings for one kind of processor.
type Profile struct {
	Processor string // "GenuineIntel 6/143, 2048 KiB of second-level cache, virtual"
	File      string // that was read, or would be; "" for a built-in profile
	Settings  Settings
}

// builtIn are the profiles of measured processors, by vendor, families and models. Without models,
// a profile applies to all models of its families.
//
// Intel Xeon, Sapphire and Emerald Rapids (two virtual processors, 2 MiB of second-level cache for
// each core): the kernel copies 64 KiB from process to process in 3.1 us and 1 MiB in 51; a ring of
// the best shape takes 5.5 and 75, gompi's ring 7.0 and 90. 16 KiB take 3.8 us through the ring and
// 2.3 by a read, in both directions at once 4.1 and 2.4, in an allreduce 4.8 and 3.2, in a bcast
// 3.2 and 1.6. In one direction 16 KiB take 1.3 and 1.7, and 12 KiB .9 and 1.5. If both ends copy,
// reads win for longer messages, too (the ring and the kernel, ms: 8 MiB .79 and .46, 64 MiB 9.0
// and 7.6). In collectives a line that is only stored evicts another from the second-level cache
// (np=2, plain and non-temporal stores, us: memory from Alloc, allreduce of 1 MiB 46 and 47, of 2
// MiB 150 and 107, allgather of 512 KiB 37 and 37, of 1 MiB 122 and 101, of 4 MiB 594 and 513;
// other memory, of 1 MiB 168 and 141). More ranks have more such caches (np=16, allgather of 16 KiB
// 54 and 74). Rings of several shapes were timed with copies alone, with 128 to 512 KiB in flight.
// Chunks of 16 to 64 KiB are best: 64 KiB in 8 chunks of 16 KiB 5.5 us, in 2 of 4 KiB 14.6.
// Non-temporal stores lost in every shape (64 KiB 7.5 us, 1 MiB 112). Messages of 64 KiB take 8.6
// us through the ring, and 4.3 if the receiver reads them.
//
// AMD EPYC (two virtual processors): reads take 2 to 4 times as long as the ring (128 KiB 15 and 7
// us, 1 MiB 102 and 32). The best ring is larger than the second-level cache (4 MiB: 170 us, with
// 256 KiB in flight 488), and non-temporal stores win if the two processors share no cache. Unknown
// processors are treated alike. On family 26, Zen 5, the string instruction takes over lines
// without fetching them. So it is as fast as plain stores near and as non-temporal stores far (half
// a round trip through a bare ring with plain, non-temporal and string copies, us: near 16 KiB .47
// 1.1 .37, 64 KiB 1.6 3.0 1.2, 1 MiB 19.7 41 19.1; far 2 KiB .57 .51 .45, 16 KiB 2.1 1.3 1.2, 64
// KiB 4.4 3.1 3.0, 1 MiB 50 31 29).
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

// None is the name of a profile without settings.
const None = "none"

// Processor names this machine's processor as a Profile does.
func Processor() string { return identity().String() }

// most bounds the bytes that are read of a file. A profile has some dozen lines.
const most = 8 << 10

// Read returns the profile in a file, the empty profile for None or, for "", this machine's. It
// opens at most one file. Settings that the file lacks come from the built-in profile. If the file
// is invalid, Read returns the built-in profile and an error. For "", a missing file, or a folder
// that this user cannot read, is no error.
func Read(name string) (Profile, error) {
	p := profile(identity())
	if name == None {
		return Profile{Processor: p.Processor}, nil
	}
	file, err := name, error(nil)
	if name == "" {
		if file, err = File(); err != nil {
			return p, nil // no cache folder, so no file
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

// isAway reports whether an error means that this user has no file: HOME may be another user's, or
// no folder.
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

// CheckKeep returns the error that would keep Keep from writing the file.
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

// Keep writes s as this machine's profile, with the measured times as a comment, and returns the
// name of the file.
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
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
	return file, atomicfile.Write(filepath.Dir(file), atomicfile.File{Name: filepath.Base(file), Write: write})
}

// File returns the path of this machine's profile. It fails if a user has no cache folder.
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

// An id identifies a kind of processor.
type id struct {
	vendor        string // "" on other architectures than amd64
	family, model int
	cache         int // KiB of second-level cache of the processor that ran cpuid
	virtual       bool
}

func (i id) String() string {
	vendor := cmp.Or(i.vendor, runtime.GOARCH)
	s := fmt.Sprintf("%s %d/%d, %d KiB of second-level cache", vendor, i.family, i.model, i.cache)
	if i.virtual {
		s += ", virtual"
	}
	return s
}
