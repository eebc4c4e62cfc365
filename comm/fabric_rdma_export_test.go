package comm

import "gompi/internal/boot"

// NetworkFabric is the function NetworkFabric with cfg.
func (cfg Config) NetworkFabric(b boot.Boot) (Fabric, error) {
	if err := cfg.resolve(); err != nil {
		return Fabric{}, err
	}
	return cfg.fabric(b)
}
