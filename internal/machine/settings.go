package machine

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/internal/env"
)

// A Setting is a threshold that a profile may set. GOMPI_TUNE knows it by the same name; package
// path documents it. A setting chooses a path or a chunk, never the order in which operands are
// combined: results are the same under any profile.
type Setting uint8

// The settings.
const (
	ReadFrom    Setting = iota // least bytes of a message that the receiver reads from the sender's memory
	ReadBelow                  // and the least that it does not read any more
	RingChunk                  // longest record of the shared-memory ring
	RingBytes                  // bytes of the ring that are in use
	NonTemporal                // least bytes of a copy with non-temporal stores to a rank far away
	String                     // and of a copy by the string instruction, near or far
	Around                     // least bytes of all ranks with which collectives use non-temporal stores
	AroundOwn                  // and the least of one rank, on average

	numSettings
)

// Never is a number of bytes that is never reached.
const Never = 1 << 40

// known are the names of the settings, and the least and the most bytes they may have, as for
// package path's thresholds.
var known = [numSettings]struct {
	name        string
	least, most int64
}{
	ReadFrom:    {"shm.read", 1, Never},
	ReadBelow:   {"shm.read.below", 1, Never},
	RingChunk:   {"shm.ring.chunk", 4 << 10, 64 << 10},
	RingBytes:   {"shm.ring.bytes", 64 << 10, 2 << 20},
	NonTemporal: {"shm.ring.nontemporal", 4 << 10, Never},
	String:      {"shm.ring.string", 256, Never},
	Around:      {"shm.nontemporal", 1, Never},
	AroundOwn:   {"shm.nontemporal.rank", 1, Never},
}

// Settings are the bytes of each Setting, 0 for a setting that is not set.
type Settings [numSettings]int64

// String returns the settings that are set, in the syntax of a profile's file and of GOMPI_TUNE.
func (s Settings) String() string {
	var all []string
	for k, n := range s {
		if n != 0 {
			all = append(all, known[k].name+"="+size(n))
		}
	}
	return strings.Join(all, ";")
}

// Reads reports whether the receiver reads messages of some length from the sender's memory.
func (s Settings) Reads() bool { return s[ReadFrom] != 0 && s[ReadFrom] != Never }

// over returns s, completed by base. A range of read lengths comes whole from s or from base.
func (s Settings) over(base Settings) Settings {
	if s[ReadFrom] != 0 {
		base[ReadBelow] = 0
	}
	for k := range s {
		if s[k] == 0 {
			s[k] = base[k]
		}
	}
	return s
}

// parse reads the text of a file: settings, separated by ";" or ends of lines, and comments.
func parse(text string) (s Settings, err error) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for item := range strings.SplitSeq(line, ";") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			if err := s.set(item); err != nil {
				return Settings{}, err
			}
		}
	}
	return s, nil
}

// set sets a setting, name=bytes.
func (s *Settings) set(item string) error {
	name, value, _ := strings.Cut(item, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	var names []string
	for k, setting := range known {
		if setting.name != name {
			names = append(names, setting.name)
			continue
		}
		n, ok := env.ParseBytes(value)
		if value == "never" {
			n, ok = Never, true
		}
		if !ok || n < setting.least || n > setting.most {
			return fmt.Errorf("%s=%.40q: want %s to %s", name, value, size(setting.least), size(setting.most))
		}
		s[k] = n
		return nil
	}
	return fmt.Errorf("%.40q: want %s", name, strings.Join(names, ", "))
}

// size formats a number of bytes in the syntax of set.
func size(n int64) string {
	if n == Never {
		return "never"
	}
	i := 0
	for ; n%1024 == 0 && i < 3; i++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + [...]string{"", "k", "m", "g"}[i]
}
