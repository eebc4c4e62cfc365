//go:build linux && cgo

package main

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gompi/cudaops/topo"
)

var levels = map[nvml.GpuTopologyLevel]topo.Level{
	nvml.TOPOLOGY_INTERNAL: topo.Board, nvml.TOPOLOGY_SINGLE: topo.Switch, nvml.TOPOLOGY_MULTIPLE: topo.Switches,
	nvml.TOPOLOGY_HOSTBRIDGE: topo.HostBridge, nvml.TOPOLOGY_NODE: topo.Node, nvml.TOPOLOGY_SYSTEM: topo.System,
}

// links queries every pair of devices.
func (s *survey) links() {
	ends := make([]nvlinks, len(s.handles))
	for i := range ends {
		ends[i] = s.nvlinks(s.handles[i])
	}
	for i, from := range s.handles {
		links := make([]topo.Link, len(s.handles))
		for j, to := range s.handles {
			if i != j {
				links[j] = s.link(from, to)
				links[j].NVLinks = ends[i].to(s.host.Devices[j].PCI, ends[j])
			}
		}
		s.host.Links = append(s.host.Links, links)
	}
}

// link queries the connection of two devices.
func (s *survey) link(from, to nvml.Device) topo.Link {
	var l topo.Link
	s.get("nvmlDeviceGetTopologyCommonAncestor", func() nvml.Return {
		level, ret := from.GetTopologyCommonAncestor(to)
		if ret == nvml.SUCCESS {
			l.Level = levels[level]
		}
		return ret
	})
	return l
}

// nvlinks are the NVLinks of a device, by their other end.
type nvlinks struct {
	direct   map[string]int // number to the device at a PCI address
	switched int            // to NVSwitches
}

// to returns the number of NVLinks to another device: direct links or, through NVSwitches, the
// smaller number of links that either device has to the switches.
func (n nvlinks) to(pci string, other nvlinks) int {
	if direct := n.direct[pci]; direct > 0 {
		return direct
	}
	return min(n.switched, other.switched)
}

// nvlinks queries the NVLinks of a device.
func (s *survey) nvlinks(handle nvml.Device) nvlinks {
	n := nvlinks{direct: map[string]int{}}
	for link := range nvml.NVLINK_MAX_LINKS {
		active := false
		if !s.get("nvmlDeviceGetNvLinkState", func() nvml.Return {
			state, ret := handle.GetNvLinkState(link)
			active = state == nvml.FEATURE_ENABLED
			return ret
		}) {
			break // no more links
		}
		if !active {
			continue
		}
		remote := nvml.NVLINK_DEVICE_TYPE_UNKNOWN
		s.get("nvmlDeviceGetNvLinkRemoteDeviceType", func() (ret nvml.Return) {
			remote, ret = handle.GetNvLinkRemoteDeviceType(link)
			return ret
		})
		if remote == nvml.NVLINK_DEVICE_TYPE_SWITCH {
			n.switched++
			continue
		}
		s.get("nvmlDeviceGetNvLinkRemotePciInfo", func() nvml.Return {
			pci, ret := handle.GetNvLinkRemotePciInfo(link)
			if ret == nvml.SUCCESS {
				n.direct[address(pci)]++
			}
			return ret
		})
	}
	return n
}
