package link

import (
	"fmt"
	"time"

	"gompi/hostfile"
)

// shape returns the parent of each host: the number of the host that starts the agent, or
// launcher. Hosts for which other is false are started by the launcher, as are the others up to
// fanout. More others form a tree of the least depth that fanout allows, with the least branches
// for that depth. The hosts below a host follow it in the list, because neighbors in the list are
// mostly neighbors in a building. With a fanout of 0 the launcher starts all.
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

// Shape returns the parent of each of a number of other hosts: a number, or -1 for the launcher's
// host.
func Shape(hosts, fanout int) (from []int) {
	return shape(make([]hostfile.Host, hosts), fanout, func(hostfile.Host) bool { return true })
}

// Sizes are bytes of messages to and from relays: an order to start, and the headers of orders
// and reports.
type Sizes struct{ Start, Orders, Report int }

// SizesOf returns the sizes for the last of so many hosts.
func SizesOf(hosts int) Sizes {
	n, at := hosts-1, hostfile.Host{Name: fmt.Sprintf("node%05d", hosts)}
	return Sizes{
		Start:  len(protocol.Append(nil, &start{host: n, from: n, relay: true, at: at, limit: time.Minute})),
		Orders: len(protocol.Append(nil, &orders{hosts: []int{n}})),
		Report: len(protocol.Append(nil, &report{host: n})),
	}
}

// narrowest returns the least fan-out for a tree of n hosts that is no deeper than with most.
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

// room returns the capacity of a tree, without its root.
func room(fanout, depth int) int {
	all, level := 0, 1
	for range depth {
		level *= fanout
		all += level
	}
	return all
}

// grow makes root the parent of at most fanout branches of hosts.
func grow(from []int, root int, hosts []int, fanout int) {
	for branches := min(fanout, len(hosts)); branches > 0; branches-- {
		n := (len(hosts) + branches - 1) / branches
		from[hosts[0]] = root
		grow(from, hosts[0], hosts[1:n], fanout)
		hosts = hosts[n:]
	}
}
