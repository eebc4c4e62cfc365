package comm

import (
	"gompi/internal/boot"
	"gompi/internal/poll"
)

// NetworkFabric is how Init connects a process, for ranks that are goroutines.
func NetworkFabric(b boot.Boot) (Fabric, error) {
	set, err := poll.New(-1)
	if err != nil {
		return Fabric{}, err
	}
	return network(b, set)
}
