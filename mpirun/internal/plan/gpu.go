package plan

import (
	"fmt"
	"slices"
	"strings"
)

// A GPU is a unit to give to a rank: a device, or a MIG slice of a device.
type GPU struct {
	Label     string // for people: 3, or 3:1 for a slice
	Token     string // its name in CUDA_VISIBLE_DEVICES
	CPUs      []int  // nearby hardware threads, usable or not; nil: unknown
	Exclusive bool   // for a single process at a time
	Slice     bool   // a process can see a single slice only
}

// usesGPUs reports whether the policy is about GPUs.
func (p *Policy) usesGPUs() bool { return p.GPUs > 0 || p.BindTo == BindGPU }

// giveGPUs assigns GPUs to each rank of a host: Policy.GPUs consecutive GPUs. If that is 1 and
// there are fewer GPUs than ranks, neighbours share. If it is 0, ranks see all GPUs, and are
// assigned the GPU that scripts choose by local rank.
func (p *Plan) giveGPUs(node int) {
	ranks, n, each := p.Local[node], len(p.Hosts[node].GPUs), p.Policy.GPUs
	if n == 0 {
		return
	}
	for i, rank := range ranks {
		r := &p.Ranks[rank]
		switch {
		case each == 0:
			r.GPUs = []int{i % n}
		case each == 1 && len(ranks) > n:
			r.GPUs = []int{groupInRow(i, len(ranks), n)}
		default:
			for k := range each {
				r.GPUs = append(r.GPUs, i*each+k)
			}
		}
	}
}

// enoughGPUs returns an error for hosts with too few GPUs. If ranks get 1 each they may share.
func (p *Plan) enoughGPUs() error {
	each := p.Policy.GPUs
	if each == 0 {
		return nil
	}
	few := hostList(len(p.Hosts), func(i int) string {
		n, ranks := len(p.Hosts[i].GPUs), len(p.Local[i])
		if ranks == 0 || n >= ranks*each || n > 0 && each == 1 && !p.Policy.NoOversubscribe {
			return ""
		}
		return fmt.Sprintf("%s has %s for %s", p.Hosts[i].Name, count(n, "GPU"), count(ranks, "rank"))
	})
	if few != "" {
		return fmt.Errorf("-gpus-per-rank %d: %s: want fewer ranks there (-N), or fewer GPUs for each", each, few)
	}
	if each == 1 {
		return nil
	}
	cut := hostList(len(p.Hosts), func(i int) string {
		if len(p.Local[i]) == 0 || !slices.ContainsFunc(p.Hosts[i].GPUs, func(g GPU) bool { return g.Slice }) {
			return ""
		}
		return p.Hosts[i].Name
	})
	if cut != "" {
		return fmt.Errorf("-gpus-per-rank %d: a process can use one MIG slice only, and the GPUs are cut into slices on %s: want 1", each, cut)
	}
	return nil
}

// bindNear binds each rank of a host to its share of the cores near its GPUs. Ranks with the same
// nearby cores share them, evenly if there is a core for each. Ranks without usable cores near
// their GPUs stay unbound, or within -cpu-list.
func (p *Plan) bindNear(node int) {
	host := &p.Hosts[node]
	near := map[string][]core{} // by CPUs
	ranks := map[string][]int{}
	var names []string
	for _, rank := range p.Local[node] {
		cores := nearCores(p.Policy.units(host), host.GPUs, p.Ranks[rank].GPUs)
		name := Ranges(threads(cores))
		if ranks[name] == nil {
			near[name], names = cores, append(names, name)
		}
		ranks[name] = append(ranks[name], rank)
	}
	for _, name := range names {
		if len(near[name]) == 0 && p.Policy.CPUList != "" {
			near[name] = p.Policy.units(host)
		}
		for j, rank := range ranks[name] {
			p.Ranks[rank].CPUs = threads(p.Policy.pick(host, near[name], BindGPU, j, len(ranks[name])))
		}
	}
}

// nearCores returns the units near the GPUs mine.
func nearCores(units []core, gpus []GPU, mine []int) []core {
	return slices.DeleteFunc(units, func(c core) bool {
		return !slices.ContainsFunc(mine, func(g int) bool { return slices.Contains(gpus[g].CPUs, c.threads[0]) })
	})
}

// far names the hosts where a rank could not be bound near its GPU.
func (p *Plan) far() string {
	if p.Policy.BindTo != BindGPU {
		return ""
	}
	return about("-bind-to gpu leaves ranks unbound: ", hostList(len(p.Hosts), func(i int) string {
		free := slices.ContainsFunc(p.Local[i], func(rank int) bool { return p.Ranks[rank].CPUs == nil })
		switch h := &p.Hosts[i]; {
		case !free || len(h.Cores) == 0: // unbound reports it
			return ""
		case len(h.GPUs) == 0:
			return h.Name + " has no GPU"
		}
		return p.Hosts[i].Name + " does not tell which cores are near, or ranks may not use them"
	}), "")
}

// exclusive names the hosts where ranks share a GPU that serves a single process.
func (p *Plan) exclusive() string {
	if !p.Policy.usesGPUs() {
		return ""
	}
	shared := hostList(len(p.Hosts), func(i int) string {
		h, users := &p.Hosts[i], map[int]int{}
		for _, rank := range p.Local[i] {
			for _, g := range p.Ranks[rank].GPUs {
				users[g]++
			}
		}
		var shared []string
		for g := range h.GPUs {
			if users[g] > 1 && h.GPUs[g].Exclusive {
				shared = append(shared, h.GPUs[g].Label)
			}
		}
		if shared == nil {
			return ""
		}
		return fmt.Sprintf("%s (gpu %s)", h.Name, strings.Join(shared, ","))
	})
	return about("ranks share GPUs in EXCLUSIVE_PROCESS mode, where all but the first will be refused: ", shared,
		"; nvidia-smi -c DEFAULT ends that mode, and MPS makes one process of them")
}

// GPUText names the GPUs of a rank, as the end of a list: ", gpu 0,1"; "" for none.
func (p *Plan) GPUText(rank int) string {
	r := &p.Ranks[rank]
	if r.GPUs == nil {
		return ""
	}
	labels := make([]string, len(r.GPUs))
	for i, g := range r.GPUs {
		labels[i] = p.Hosts[r.Node].GPUs[g].Label
	}
	return ", gpu " + strings.Join(labels, ",")
}

// Visible returns the value of CUDA_VISIBLE_DEVICES for a rank: its own GPUs under
// -gpus-per-rank; with -bind-to gpu all GPUs of its host for ranks, in the order of their
// assignment; otherwise "", for no change.
func (p *Plan) Visible(rank int) string {
	r := &p.Ranks[rank]
	gpus := p.Hosts[r.Node].GPUs
	var tokens []string
	switch {
	case p.Policy.GPUs > 0:
		for _, g := range r.GPUs {
			tokens = append(tokens, gpus[g].Token)
		}
	case p.Policy.BindTo == BindGPU:
		for _, g := range gpus {
			tokens = append(tokens, g.Token)
		}
	}
	return strings.Join(tokens, ",")
}
