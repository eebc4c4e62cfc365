package sim

// A Machine is what messages cost, in the terms of the LogGP model (Alexandrov, Ionescu, Schauser,
// Scheiman: LogGP, 1995), and of which parts hosts and their network are. Times are in seconds,
// those per byte in seconds for a byte. The zero Machine costs nothing.
type Machine struct {
	Name string

	// Between hosts, and inside each.
	Between, Inside Link

	// Shared is what collectives through the memory of a host cost.
	Shared Memory

	// Wire is G, what a byte takes on a host's link, each way, and Gap is g, what a message takes
	// there besides, whatever its length. Burst bytes pass at once after a pause of the link.
	Wire, Gap float64
	Burst     int

	// A message longer than Eager bytes leaves once its receiver has sent word that it has a
	// buffer, as in package round. Sent bytes wait in a socket, up to Buffer of them: the sender is
	// done with a message when the rest has left.
	Eager, Buffer int

	// Reduce is what a processor takes to combine a byte of two vectors, or to copy it.
	Reduce float64

	// Ranks of a host are neighbors. RanksPerHost is 1 if it is 0. Its ranks share the host's
	// links evenly, if there are several Rails, and a rank has the same on both ends.
	RanksPerHost, Rails int

	// Processors is how many a host has, 0 for one to each rank. Hosts of them are one machine's,
	// if Hosts is more than 0. Where ranks share processors, to wake one costs Switch.
	Processors, Hosts int
	Switch            float64

	// Beside has the hosts of processes that run beside the ranks, as a launcher does: the last of
	// a Run. They have no part in collectives, and Rails is 1 with them.
	Beside []int

	// Tree is the network of switches above hosts, from the lowest level up: none for one switch
	// that is as fast as all links.
	Tree []Level
}

// A Link is what a message costs processors, and how long it is under way.
type Link struct {
	Latency  float64 // L: from the last byte's departure to its arrival
	Overhead float64 // o: of a processor, for each message, at either end
	Copy     float64 // of a processor, for each byte, at either end
}

// A Level is a level of switches of a fat tree: each has links of so many hosts below, and one
// upward, and one back, that all of them share.
type Level struct {
	Hosts   int     // below each switch of the level
	Up      float64 // what a byte takes on the shared link
	Latency float64 // of a way through the level, besides Between.Latency
}

// Oversubscribed returns a level of switches with so many hosts, whose links upward carry less than
// those hosts can send, by this factor.
func (m *Machine) Oversubscribed(hosts int, factor, latency float64) Level {
	return Level{Hosts: hosts, Up: m.Wire * factor / float64(hosts*max(m.Rails, 1)), Latency: latency}
}

func (m *Machine) perHost() int { return max(m.RanksPerHost, 1) }

// A Fault is something that goes wrong.
type Fault struct {
	Rank int
	Late float64 // seconds by which the rank comes later than the others
	Slow float64 // factor by which its processor is slower, 0 for 1

	// Cut means that the link of the rank's host carries nothing from second At on. After Detect
	// seconds in which a message has not come through, all ranks learn that from the launcher.
	Cut        bool
	At, Detect float64
}
