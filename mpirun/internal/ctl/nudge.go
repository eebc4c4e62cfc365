package ctl

import "gompi/internal/boot/wire"

// Nudge is sent to an agent behind srun while more of its output is expected; the agent ignores
// it. Slurm's daemon there does not set TCP_NODELAY either (see remote), and its sockets are out
// of reach. Its next segment waits 40 ms for our acknowledgement, which a Nudge carries at once.
type Nudge struct{}

func (*Nudge) fields(*wire.Codec) {}
