package sim

// A Machine is the hosts, their network and the cost of messages, in the terms of the LogGP model
// (Alexandrov, Ionescu, Schauser, Scheiman: LogGP, 1995). Times are in seconds, or in seconds per
// byte. The zero Machine costs nothing.
type Machine struct {
	Name string

	// Between hosts, and inside each.
	Between, Inside Link

	// Shared is the cost of collectives through the memory of a host.
	Shared Memory

	// Wire is G, the time of a byte on a host's link, each way. Gap is g, the time of a message
	// there besides its bytes. After a pause of the link, Burst bytes pass at once.
	Wire, Gap float64
	Burst     int

	// A message longer than Eager bytes leaves when the receiver has reported in a message that its
	// buffer is ready, as in package round. A socket holds up to Buffer bytes: the sender is done
	// with a message when the rest has left.
	Eager, Buffer int

	// Reduce is a processor's time to combine a byte of two vectors, or to copy a byte.
	Reduce float64

	// RanksPerHost neighboring ranks share a host; 0 means 1. If a host has several links (Rails),
	// its ranks share them evenly, and a rank sends and receives by the same one.
	RanksPerHost, Rails int

	// Processors is the number of processors of a host, or 0 for one per rank. If Hosts is more
	// than 0, Hosts hosts share the Processors of one machine. Where ranks share processors, a
	// wake-up costs Switch.
	Processors, Hosts int
	Switch            float64

	// Beside has the hosts of processes beside the ranks, such as a launcher: the last ranks of a
	// Run. They take part in no collective. With them, Rails is 1.
	Beside []int

	// Tree is the network of switches above hosts, from the lowest level up. It is empty for one
	// switch that is as fast as all links.
	Tree []Level
}

// A Link is the cost of a message for processors, and its latency.
type Link struct {
	Latency  float64 // L: from the last byte's departure to its arrival
	Overhead float64 // o: of a processor, for each message, at either end
	Copy     float64 // of a processor, for each byte, at either end
}

// A Level is a level of switches of a fat tree. Each switch has a number of hosts below and one
// link up and one back, which those hosts share.
type Level struct {
	Hosts   int     // below each switch of the level
	Up      float64 // time of a byte on the shared link
	Latency float64 // of a crossing of the level, besides Between.Latency
}

// Oversubscribed returns a level of switches with a number of hosts each. The uplinks carry less
// than the hosts can send, by a factor.
func (m *Machine) Oversubscribed(hosts int, factor, latency float64) Level {
	return Level{Hosts: hosts, Up: m.Wire * factor / float64(hosts*max(m.Rails, 1)), Latency: latency}
}

func (m *Machine) perHost() int { return max(m.RanksPerHost, 1) }

// A Fault is a disturbance of one rank.
type Fault struct {
	Rank int
	Late float64 // seconds by which the rank starts after the others
	Slow float64 // factor by which its processor is slower, 0 for 1

	// Cut means that the link of the rank's host carries nothing from second At on. Detect seconds
	// after the first lost message, all ranks learn of the cut from the launcher.
	Cut        bool
	At, Detect float64
}
