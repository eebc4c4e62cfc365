package job

import (
	"slices"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
)

// inputAhead is how much input an agent may hold that its ranks have not read.
const inputAhead = 128 << 10

// An input forwards standard input to the ranks that are to have it, no faster than they read it.
type input struct {
	ch       <-chan []byte // closed at the end of input
	targets  []*host
	inFlight map[*host]int // bytes sent and not consumed
	ended    bool
}

// newInput returns the input of the rank that stdin names, or of all or none,
// among those of hosts. Nothing is read yet.
func newInput(stdin cmdline.Stdin, hosts []*host) *input {
	in := &input{inFlight: map[*host]int{}}
	for _, h := range hosts {
		for _, r := range h.ranks {
			if stdin.Takes(r) {
				in.targets = append(in.targets, h)
				break
			}
		}
	}
	in.ended = len(in.targets) == 0
	return in
}

// wireStdin encodes stdin for agents.
func wireStdin(stdin cmdline.Stdin) int {
	switch {
	case stdin.All:
		return ctl.StdinAll
	case stdin.Rank < 0:
		return ctl.StdinNone
	}
	return stdin.Rank
}

// chunks returns the channel of input, nil while agents hold enough of it.
func (in *input) chunks() <-chan []byte {
	if in.ended {
		return nil
	}
	for _, n := range in.inFlight {
		if n >= inputAhead {
			return nil
		}
	}
	return in.ch
}

// pass forwards data. Empty data is the end of input.
func (in *input) pass(data []byte) {
	in.ended = len(data) == 0
	for _, h := range in.targets {
		in.inFlight[h] += len(data)
		h.Send(&ctl.Input{Data: data})
	}
}

// consumed counts that the ranks of h have read n bytes.
func (in *input) consumed(h *host, n int) { in.inFlight[h] -= n }

// gone forgets a host whose ranks have ended, which does not say any more what it has consumed.
// Without any host left, nothing more is read.
func (in *input) gone(h *host) {
	delete(in.inFlight, h)
	in.targets = slices.DeleteFunc(in.targets, func(t *host) bool { return t == h })
	in.ended = in.ended || len(in.targets) == 0
}
