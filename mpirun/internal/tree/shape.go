package tree

import (
	"fmt"
	"time"

	"gompi/hostfile"
)

// shape returns from where each host is started: from another, by number, or from the launcher's.
// Of the hosts for which other is true, up to fanout are started by the launcher; more are a tree
// that is no deeper than that allows, and whose hosts start as few others as that depth takes.
// Those below one host follow it in the list: neighbors there are mostly neighbors in a building.
// With a fanout of 0 the launcher starts all.
func shape(hosts []hostfile.Host, fanout int, other func(hostfile.Host) bool) (from []int) {
	from = make([]int, len(hosts))
	var others []int
	for i, h := range hosts {
		from[i] = launcher
		if other(h) {
			others = append(others, i)
		}
	}
	if fanout > 0 {
		grow(from, launcher, others, narrowest(len(others), fanout))
	}
	return from
}

// Shape returns from where each of so many other hosts is started: another, by number, or -1 for
// the launcher's.
func Shape(hosts, fanout int) (from []int) {
	return shape(make([]hostfile.Host, hosts), fanout, func(hostfile.Host) bool { return true })
}

// Sizes are what a host's number and its login take in the messages to relays.
type Sizes struct{ Start, Orders, Report int }

// SizesOf returns, in bytes, an order to start the agent of the last of so many hosts, what an
// order to that takes besides what it passes on, and a report of it besides.
func SizesOf(hosts int) Sizes {
	n, at := hosts-1, hostfile.Host{Name: fmt.Sprintf("node%05d", hosts)}
	return Sizes{
		Start:  len(protocol.Append(nil, &start{host: n, from: n, relay: true, at: at, limit: time.Minute})),
		Orders: len(protocol.Append(nil, &orders{hosts: []int{n}})),
		Report: len(protocol.Append(nil, &report{host: n})),
	}
}

// narrowest returns the smallest fan-out with which a tree of n hosts is no deeper than with most.
func narrowest(n, most int) int {
	depth := 1
	for room(most, depth) < n {
		depth++
	}
	f := 1
	for room(f, depth) < n {
		f++
	}
	return f
}

// room returns how many hosts a tree has room for, without its root.
func room(fanout, depth int) int {
	all, level := 0, 1
	for range depth {
		level *= fanout
		all += level
	}
	return all
}

// grow has hosts started from one, in at most fanout branches.
func grow(from []int, root int, hosts []int, fanout int) {
	for branches := min(fanout, len(hosts)); branches > 0; branches-- {
		n := (len(hosts) + branches - 1) / branches
		from[hosts[0]] = root
		grow(from, hosts[0], hosts[1:n], fanout)
		hosts = hosts[n:]
	}
}
