package ctl

import "gompi/internal/boot/wire"

// Nudge is what the launcher sends an agent behind srun while more of what that says must be on
// its way; the agent does nothing about it. Slurm's daemon there does not set TCP_NODELAY either
// (see remote), and we cannot reach its sockets: its next piece waits 40 ms for our kernel's
// acknowledgement, unless that has something to send.
type Nudge struct{}

func (*Nudge) fields(*wire.Codec) {}
