// Package topo describes the GPUs of a host, the processors near each, and the connections of the
// GPUs. Package topo has plain types and asks no driver, so that a static program may import it.
// gompi-topo, a separate program below this folder, asks NVIDIA's library (NVML) and writes a Host
// as JSON. FromKernel reads the little that the kernel knows without NVML.
package topo

import (
	"encoding/json"
	"fmt"
	"unicode"
)

// A Host describes the GPUs of one host. An unknown field is zero, independently of the others.
type Host struct {
	Driver  string   `json:"driver,omitempty"` // version of NVIDIA's kernel driver
	Devices []Device `json:"devices"`          // in the order of their PCI addresses
	Links   [][]Link `json:"links,omitempty"`  // Links[i][j] is from Devices[i] to Devices[j]; nil: not known

	Trouble  string   `json:"trouble,omitempty"`  // why NVML failed; "" after success
	Warnings []string `json:"warnings,omitempty"` // devices left out, a line each
}

// A Device is one GPU.
type Device struct {
	Index  int     `json:"index"` // nvidia-smi's number, and CUDA's with CUDA_DEVICE_ORDER=PCI_BUS_ID
	PCI    string  `json:"pci"`   // address: 0000:1b:00.0
	UUID   string  `json:"uuid"`
	Name   string  `json:"name"`
	Memory uint64  `json:"memory,omitempty"` // bytes
	Used   uint64  `json:"used,omitempty"`   // bytes of Memory
	Busy   *int    `json:"busy,omitempty"`   // percent of the time in which it computed, up to a second ago
	Mode   Mode    `json:"mode,omitempty"`
	NUMA   int     `json:"numa"`           // its memory domain, -1: unknown
	CPUs   string  `json:"cpus,omitempty"` // nearest processors, as Linux lists them: 0-47,96-143
	MIG    bool    `json:"mig,omitempty"`  // divided into slices, and only these can be used
	Slices []Slice `json:"slices,omitempty"`
}

// A Slice is one MIG device: a part of a GPU that programs see as a GPU.
type Slice struct {
	UUID   string `json:"uuid"`
	Name   string `json:"name,omitempty"`
	Memory uint64 `json:"memory,omitempty"` // bytes
}

// A Mode is the number of processes that may use a device at a time.
type Mode string

// The modes.
const (
	Shared           Mode = "DEFAULT"           // any number
	ExclusiveThread  Mode = "EXCLUSIVE_THREAD"  // one, of old drivers
	ExclusiveProcess Mode = "EXCLUSIVE_PROCESS" // one
	Prohibited       Mode = "PROHIBITED"        // none
)

// A Link is the connection from one device to another.
type Link struct {
	Level   Level `json:"level,omitempty"`   // of the PCI tree where they meet
	NVLinks int   `json:"nvlinks,omitempty"` // between them, or from each to the switch that joins them
}

// A Level is the place where two devices meet, by nvidia-smi's abbreviation.
type Level string

// The levels, nearest first.
const (
	Board      Level = "PSB"  // one board
	Switch     Level = "PIX"  // one PCI switch
	Switches   Level = "PXB"  // several PCI switches
	HostBridge Level = "PHB"  // the PCI host bridge of a processor
	Node       Level = "NODE" // several host bridges of one memory domain
	System     Level = "SYS"  // the connection between memory domains
)

// Limits of a Host, so that a broken program can fill neither memory nor a terminal.
const (
	// MaxJSON is the largest JSON form, in bytes.
	MaxJSON = 1 << 20
	// MaxDevices is the most devices of a host, and the most slices of a device.
	MaxDevices = 256
)

// Parse parses the JSON form of a Host, and refuses data that no gompi-topo writes: more than
// MaxDevices, links that do not fit the devices, unprintable characters.
func Parse(data []byte) (*Host, error) {
	if len(data) > MaxJSON {
		return nil, fmt.Errorf("%d bytes about GPUs: want %d or less", len(data), MaxJSON)
	}
	h := new(Host)
	if err := json.Unmarshal(data, h); err != nil {
		return nil, fmt.Errorf("%.80q: %w: want the GPUs of a host as JSON", data, err)
	}
	return h, h.check()
}

func (h *Host) check() error {
	if len(h.Devices) > MaxDevices {
		return fmt.Errorf("%d GPUs: want %d or less", len(h.Devices), MaxDevices)
	}
	if n := len(h.Links); n != 0 && n != len(h.Devices) {
		return fmt.Errorf("links of %d GPUs: want them of all %d or none", n, len(h.Devices))
	}
	texts := append([]string{h.Driver, h.Trouble}, h.Warnings...)
	for i, d := range h.Devices {
		if len(d.Slices) > MaxDevices {
			return fmt.Errorf("GPU %d: %d slices: want %d or less", d.Index, len(d.Slices), MaxDevices)
		}
		texts = append(texts, d.PCI, d.UUID, d.Name, string(d.Mode), d.CPUs)
		for _, s := range d.Slices {
			texts = append(texts, s.UUID, s.Name)
		}
		if len(h.Links) == 0 {
			continue
		}
		if n := len(h.Links[i]); n != len(h.Devices) {
			return fmt.Errorf("GPU %d: links to %d GPUs: want them to all %d", d.Index, n, len(h.Devices))
		}
		for _, l := range h.Links[i] {
			texts = append(texts, string(l.Level))
		}
	}
	for _, s := range texts {
		for _, r := range s {
			if !unicode.IsPrint(r) {
				return fmt.Errorf("%.80q: want printable characters", s)
			}
		}
	}
	return nil
}
