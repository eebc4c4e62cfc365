package startsim

const us, ms = 1e-6, 1e-3

// Measured are the costs on an AMD EPYC (family 25, model 17), with logins by OpenSSH.
// docs/scale.md describes the measurement.
var Measured = Costs{
	Launcher: 14.7 * ms, Greet: 0.3 * ms, Fork: 0.7 * ms, Client: 87 * ms, Server: 33 * ms, Crypt: 0.001 * us,
	Agent: 10 * ms, Spawn: 0.6 * ms, Process: 2.1 * ms, Bell: 0.3 * us, Card: 2.3 * us, Touch: 8 * us,
	Connect: 100 * us, Close: 0.2 * ms, Look: 71 * us,
}
