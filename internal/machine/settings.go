package machine

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/internal/env"
)

// A Setting is one that a profile may make. GOMPI_TUNE knows it by the same name: package path says
// what it does. It chooses a way or a chunk, and never in which order operands are combined:
// results are the same under any profile.
type Setting uint8

// The settings.
const (
	ReadFrom    Setting = iota // from how many bytes on messages are read where they lie
	ReadBelow                  // and from which on they are not
	RingChunk                  // of the ring that messages go through, the longest record
	RingBytes                  // and how much of it is in use
	NonTemporal                // from how many bytes on a copy to a rank far away is non-temporal
	String                     // and from how many on a copy, near or far, is by the string instruction
	Around                     // from how many bytes of all ranks on collectives store around the caches
	AroundOwn                  // and from how many of one rank, on average

	numSettings
)

// Never is a number of bytes that is never reached.
const Never = 1 << 40

// known are the names of the settings, and the least and the most bytes they may have: those of
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

// Settings are the bytes of each Setting, 0 if it is not made.
type Settings [numSettings]int64

// String returns the settings that are made as a profile's file and GOMPI_TUNE have them.
func (s Settings) String() string {
	var all []string
	for k, n := range s {
		if n != 0 {
			all = append(all, known[k].name+"="+size(n))
		}
	}
	return strings.Join(all, ";")
}

// Reads reports whether messages of some length are read where they lie.
func (s Settings) Reads() bool { return s[ReadFrom] != 0 && s[ReadFrom] != Never }

// over returns s, with those of base where s makes none. A range of lengths is of one of them.
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

// parse reads the lines of a file: settings, with ";" or an end of line between them, and comments.
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

// set makes a setting, name=bytes.
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

// size writes a number of bytes as set reads it.
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
