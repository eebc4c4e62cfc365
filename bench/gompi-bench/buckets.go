package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gompi/bench/internal/measure"
)

// operation is the name of a profile in gompi-bench, and in all rows.
func operation(m measure.Model) string { return "ddp-" + m.Name }

// Limits of comm/ddp's buckets, in numbers of four bytes: of the first, and of the others.
const (
	firstBucket = 1 << 20 / 4
	nextBucket  = 25 << 20 / 4
)

// buckets returns the lengths of the buckets in which comm/ddp averages the gradients of parameters
// of these lengths: filled from the last parameter to the first, the first bucket small, so that it
// can be sent early. A parameter that is larger than a bucket has one of its own. PyTorch's differ
// a little: it ends a bucket when it is full or more.
func buckets(lengths []int) []int {
	var all []int
	room := firstBucket
	for i := len(lengths) - 1; i >= 0; i-- {
		n := lengths[i]
		switch {
		case len(all) == 0:
			all = append(all, 0)
		case n > room:
			all, room = append(all, 0), nextBucket
		}
		all[len(all)-1] += n
		room -= n
	}
	return all
}

// profilesIn is the file of profiles that the peers read, in a folder. Its lines are
// "tensors NAME LENGTH...", with the length of each parameter, and "buckets NAME LENGTH...".
func profilesIn(dir string) string { return filepath.Join(dir, "profiles") }

// writeProfiles makes the file.
func writeProfiles(dir string, profiles []measure.Model) error {
	var b strings.Builder
	for _, m := range profiles {
		for kind, lengths := range map[string][]int{"tensors": m.Lengths, "buckets": buckets(m.Lengths)} {
			fmt.Fprintf(&b, "%s %s %s\n", kind, operation(m), strings.Trim(fmt.Sprint(lengths), "[]"))
		}
	}
	return os.WriteFile(profilesIn(dir), []byte(b.String()), 0o600)
}
