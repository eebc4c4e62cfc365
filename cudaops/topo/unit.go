package topo

import (
	"strconv"
	"strings"
)

// A Unit is a whole device or a slice, assignable to a process.
type Unit struct {
	Token  string // its name in CUDA_VISIBLE_DEVICES
	Device int    // position in Host.Devices; -1: a slice that a user has named, otherwise unknown
	Slice  int    // position in its device's Slices; -1: the whole device
}

// Units returns the usable units in the order of PCI addresses: each device, or its slices if MIG
// is enabled. Prohibited devices are left out. The token of a device is its number, which every
// program understands. If Devices lacks a device, programs may number differently: then the token
// is the UUID.
func (h *Host) Units() []Unit {
	var units []Unit
	for i, d := range h.Devices {
		if d.Mode == Prohibited {
			continue
		}
		if d.MIG {
			for k, s := range d.Slices {
				units = append(units, Unit{s.UUID, i, k})
			}
			continue
		}
		token := strconv.Itoa(d.Index)
		if h.gaps() {
			token = d.UUID
		}
		units = append(units, Unit{token, i, -1})
	}
	return units
}

// gaps reports whether the devices' numbers have gaps.
func (h *Host) gaps() bool {
	for i, d := range h.Devices {
		if d.Index != i {
			return true
		}
	}
	return false
}

// Named returns the units in list, a value of CUDA_VISIBLE_DEVICES, in its order and with its
// tokens. Named parses list as CUDA does: numbers, UUIDs or their prefixes, up to the first that
// does not exist. Numbers are in the order of PCI addresses. An unknown MIG slice is assumed to
// exist, because only a privileged process can list all of them.
func (h *Host) Named(list string) []Unit {
	var units []Unit
	for token := range strings.SplitSeq(list, ",") {
		u, ok := h.named(strings.TrimSpace(token))
		if !ok {
			break
		}
		units = append(units, u)
	}
	return units
}

func (h *Host) named(token string) (Unit, bool) {
	number, err := strconv.Atoi(token)
	slice := strings.HasPrefix(token, "MIG-")
	for i, d := range h.Devices {
		switch {
		case err == nil && d.Index == number, strings.HasPrefix(token, "GPU-") && strings.HasPrefix(d.UUID, token):
			return Unit{token, i, -1}, true
		case slice:
			for k, s := range d.Slices {
				if s.UUID == token {
					return Unit{token, i, k}, true
				}
			}
		}
	}
	return Unit{token, -1, -1}, slice
}

// Label returns a short name of a unit: 3 for a device, 3:1 for its second slice, and the token for
// unknown ones.
func (h *Host) Label(u Unit) string {
	if u.Device < 0 {
		return u.Token
	}
	label := strconv.Itoa(h.Devices[u.Device].Index)
	if u.Slice >= 0 {
		label += ":" + strconv.Itoa(u.Slice)
	}
	return label
}
