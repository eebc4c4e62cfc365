package startsim

import "gompi/comm/sim"

const ns, us, ms = 1e-9, 1e-6, 1e-3

// measured are the costs on an AMD EPYC (family 25, model 17): docs/scale.md says how they were
// found. Those of a login are of OpenSSH.
var measured = Costs{
	Launcher: 15.2 * ms, Greet: 0.3 * ms, Fork: 0.7 * ms, Client: 87 * ms, Server: 33 * ms, Crypt: 1 * ns,
	Agent: 10 * ms, Spawn: 0.6 * ms, Process: 1.44 * ms, Bell: 0.3 * us, Card: 3.6 * us, Touch: 12.4 * us,
	Connect: 100 * us, Close: 0.2 * ms,
}

// One is a machine with two processors that all processes of all hosts share: what tests have.
var One = Site{
	Machine: sim.Machine{
		Inside: sim.Link{Latency: 1 * us, Overhead: 2 * us, Copy: 0.1 * ns}, Between: sim.Link{Latency: 1 * us, Overhead: 4 * us, Copy: 0.2 * ns},
		Reduce: 0.03 * ns, Processors: 2, Hosts: 1 << 30, Switch: 12 * us,
	},
	Costs: measured,
}

// Cluster is hosts with 16 processors and 25 Gbit/s each.
var Cluster = Site{
	Machine: sim.Machine{
		Inside: sim.Link{Latency: 1 * us, Overhead: 2 * us, Copy: 0.1 * ns}, Between: sim.Link{Latency: 6 * us, Overhead: 1.5 * us, Copy: 0.1 * ns},
		Wire: 0.32 * ns, Reduce: 0.03 * ns, Processors: 16, Buffer: 256 << 10,
	},
	Costs: measured,
}
