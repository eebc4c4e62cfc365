package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gompi/bench/internal/measure"
)

// operation is the name of a profile's operation, in gompi-bench and in all rows.
func operation(m measure.Model) string { return "ddp-" + m.Name }

// Limits of comm/ddp's first bucket and of the others, in numbers of four bytes.
const (
	firstBucket = 1 << 20 / 4
	nextBucket  = 25 << 20 / 4
)

// buckets returns the lengths of the buckets in which comm/ddp averages the gradients of parameters
// of these lengths. They are filled from the last parameter to the first. The first bucket is
// small, so that it can be sent early. A parameter larger than a bucket has one of its own.
// PyTorch's buckets differ a little: PyTorch ends a bucket when it is full or more.
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

// profilesIn is the path of the profiles that peers read, in a folder. Its lines are "tensors NAME
// LENGTH...", with the length of each parameter, and "buckets NAME LENGTH...".
func profilesIn(dir string) string { return filepath.Join(dir, "profiles") }

// writeProfiles writes this file.
func writeProfiles(dir string, profiles []measure.Model) error {
	var b strings.Builder
	for _, m := range profiles {
		for kind, lengths := range map[string][]int{"tensors": m.Lengths, "buckets": buckets(m.Lengths)} {
			fmt.Fprintf(&b, "%s %s %s\n", kind, operation(m), strings.Trim(fmt.Sprint(lengths), "[]"))
		}
	}
	return os.WriteFile(profilesIn(dir), []byte(b.String()), 0o600)
}
