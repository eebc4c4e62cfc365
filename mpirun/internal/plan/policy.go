package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A BindTo is the kind of a rank's binding.
type BindTo uint8

// The bindings.
const (
	BindAuto     BindTo = iota // disjoint shares of the cores if there is one for each rank; else oversubscribed
	BindNone                   // nothing
	BindHWThread               // one hardware thread each
	BindCore                   // one core each
	BindL3                     // the cores of one level 3 cache
	BindNuma                   // the cores of one memory domain
	BindPackage                // the cores of one package
	BindGPU                    // a share of the cores near its GPU
)

var bindNames = []string{"auto", "none", "hwthread", "core", "l3cache", "numa", "package", "gpu"}

// String returns the binding as -bind-to spells it.
func (b BindTo) String() string { return bindNames[b] }

// ParseBindTo reads the value of -bind-to: none, hwthread, core, l3cache, numa, package (or
// socket), gpu, or auto, in any capitals. mpirun's modifiers overload-allowed and if-supported,
// after colons or commas, change nothing: binding is always that lenient here.
func ParseBindTo(s string) (BindTo, error) {
	const want = "want none, hwthread, core, l3cache, numa, package or gpu"
	words := strings.Split(strings.ReplaceAll(strings.ToLower(s), ",", ":"), ":")
	word := words[0]
	for _, m := range words[1:] {
		if m != "overload" && m != "overload-allowed" && m != "if-supported" {
			return 0, fmt.Errorf("-bind-to %q: %q: %s alone", s, m, want)
		}
	}
	if word == "socket" {
		word = "package"
	}
	if i := slices.Index(bindNames, word); i >= 0 {
		return BindTo(i), nil
	}
	return 0, fmt.Errorf("-bind-to %q%s: %s", s, smallCache(word), want)
}

// MaxCPU bounds the CPU numbers in lists.
const MaxCPU = 1 << 16

// ParseCPUs reads CPU numbers in Linux's form, 0-3,8, and returns them in ascending order.
func ParseCPUs(list string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(list, ",") {
		lo, hi, ok := parseRange(part)
		if !ok {
			return nil, fmt.Errorf("%q: want numbers of CPUs, as in 0-3,8", list)
		}
		if len(cpus) > MaxCPU {
			return nil, fmt.Errorf("%.40q: want no more than %d CPUs", list, MaxCPU)
		}
		for cpu := lo; cpu <= hi; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// parseRange reads 3 or 0-3, numbers up to MaxCPU.
func parseRange(s string) (lo, hi int, ok bool) {
	first, last, ranged := strings.Cut(s, "-")
	if !ranged {
		last = first
	}
	l, errLow := strconv.ParseUint(first, 10, 16)
	h, errHigh := strconv.ParseUint(last, 10, 16)
	return int(l), int(h), errLow == nil && errHigh == nil && l <= h
}

// within returns the hosts with only the cores allowed by list.
func within(hosts []Host, list string) ([]Host, error) {
	if list == "" {
		return hosts, nil
	}
	cpus, err := ParseCPUs(list)
	if err != nil {
		return nil, fmt.Errorf("-cpu-list %w", err)
	}
	hosts = slices.Clone(hosts)
	for i := range hosts {
		h := &hosts[i]
		if len(h.Cores) == 0 {
			continue // unbound reports it
		}
		all := allThreads(h.Cores)
		var cores [][]int
		for _, threads := range h.Cores {
			threads = slices.DeleteFunc(slices.Clone(threads), func(t int) bool {
				_, ok := slices.BinarySearch(cpus, t)
				return !ok
			})
			if len(threads) > 0 {
				cores = append(cores, threads)
			}
		}
		if h.Cores = cores; len(cores) == 0 {
			return nil, fmt.Errorf("-cpu-list %s: %s has none of them: want some of %s", list, h.Name, Ranges(all))
		}
	}
	return hosts, nil
}

// allThreads returns the hardware threads of cores, ascending.
func allThreads(cores [][]int) []int { return slices.Sorted(slices.Values(slices.Concat(cores...))) }
