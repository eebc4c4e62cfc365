package launchenv

import (
	"fmt"
	"slices"
	"strconv"

	"gompi/internal/env"
)

// settable are the variables of torchrun's ranks that users export by hand if no launcher does.
var settable = []string{
	env.TorchRank, env.TorchSize, env.TorchLocalRank, env.TorchLocalSize, env.TorchNode, env.TorchNodes,
	env.TorchMasterAddr, env.TorchMasterPort,
}

// Replaced describes the user's variables that have other values on the ranks of n's job:
// "MASTER_PORT=12340 by 41233". If a launcher's rank has called gompirun, the variables are its
// launcher's and none is the user's.
func (n *Node) Replaced(user []string) []string {
	for _, name := range []string{env.Rank, env.TorchRunID} {
		if _, ok := Value(user, name); ok {
			return nil
		}
	}
	common := map[string]string{ // to all ranks
		env.TorchSize: strconv.Itoa(n.Size()), env.TorchNodes: strconv.Itoa(len(n.Hosts)),
		env.TorchMasterAddr: n.MasterAddr, env.TorchMasterPort: strconv.Itoa(n.MasterPort),
	}
	var changes []string
	for _, kv := range Merge(user) {
		name := nameOf(kv)
		value, same := common[name]
		switch {
		case !slices.Contains(settable, name) || same && kv == name+"="+value:
		case same:
			changes = append(changes, fmt.Sprintf("%s by %s", kv, value))
		default:
			changes = append(changes, kv+" by what each rank is")
		}
	}
	slices.Sort(changes)
	return changes
}
