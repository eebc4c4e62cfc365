package sim

import (
	"fmt"
	"strings"
)

const ns, us = 1e-9, 1e-6

// Machines are the machines from which the rules of internal/core/path are derived, and others for
// study. The costs of a message between hosts were measured over TCP on a small virtual machine:
// 3.3 us for half a round trip, 8 GB/s in one direction.
var Machines = []Machine{
	// Hosts with a rank and 25 Gbit/s each.
	{Name: "network", Between: Link{12 * us, 2 * us, 0.1 * ns}, Wire: 0.32 * ns, Reduce: 0.03 * ns,
		Eager: eager, Buffer: buffer},

	// The same with eight ranks to a host.
	{Name: "cluster", Between: Link{6 * us, 1.5 * us, 0.1 * ns}, Inside: Link{6 * us, 1.5 * us, 0.1 * ns},
		Shared: hostMemory, Wire: 0.32 * ns, Reduce: 0.03 * ns, RanksPerHost: 8, Eager: eager, Buffer: buffer},

	// A host with few processors for many ranks: each message wakes a rank.
	{Name: "oversubscribed", Inside: Link{1 * us, 2 * us, 0.1 * ns}, Reduce: 0.03 * ns,
		RanksPerHost: 1 << 20, Processors: 2, Switch: 12 * us, Eager: eager, Buffer: buffer},
}

// hostMemory is the memory of 16 processors of an Intel Xeon. Measured there (and in this model),
// for 8 ranks: barrier .57 us (.60), allreduce of 8 bytes 1.03 (.60) and of 1 MiB 271 (345),
// allgather of 64 KiB 58 (66); for 16 ranks: allgather of 256 KiB 954 (840).
var hostMemory = Memory{Latency: 0.25 * us, Peer: 0.05 * us, Copy: 0.125 * ns, Total: 0.0125 * ns}

// The message sizes of comm's collectives: see message.CollectiveEager. Linux gives a socket some
// hundred KiB, and more on demand.
const (
	eager  = 256 << 10
	buffer = 256 << 10
)

// Named returns the machine with a name.
func Named(name string) (Machine, error) {
	var names []string
	for _, m := range Machines {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Machine{}, fmt.Errorf("machine %q: want one of %s", name, strings.Join(names, ", "))
}
