package boot

import (
	"crypto/rand"
	"fmt"

	"github.com/google/uuid"

	"gompi/internal/boot/wire"
)

// NewJob returns the name and the secret of a new job. Names sort by time.
func NewJob() (id string, secret [32]byte) {
	rand.Read(secret[:])
	return uuid.Must(uuid.NewV7()).String(), secret // the system's randomness does not fail
}

// nodesOf returns the node of each rank by w, or nil if there is only one node.
func nodesOf(w *wire.Welcome) ([]int32, error) {
	if len(w.Hosts) < 2 {
		return nil, nil
	}
	nodes := make([]int32, 0, min(w.Size, len(w.Placement)))
	for _, r := range w.Placement {
		if r.Node >= len(w.Hosts) || len(nodes)+r.Count > w.Size {
			return nil, fmt.Errorf("the welcome places %d ranks on node %d of %d, of %d ranks in all", r.Count, r.Node,
				len(w.Hosts), w.Size)
		}
		for range r.Count {
			nodes = append(nodes, int32(r.Node))
		}
	}
	if len(nodes) != w.Size {
		return nil, fmt.Errorf("the welcome places %d ranks of %d", len(nodes), w.Size)
	}
	return nodes, nil
}
