package topo

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// FromKernel returns what the kernel tells of the GPUs below root, which is "/"
// but in tests: those that NVIDIA's driver has, their names and UUIDs, and where
// they are. It knows nothing of memory, slices, modes and links. It starts
// nothing and takes some hundred microseconds. A host without the driver has no
// devices.
func FromKernel(root fs.FS) *Host {
	h := &Host{Driver: driverVersion(text(root, "proc/driver/nvidia/version"))}
	const dir = "proc/driver/nvidia/gpus"
	entries, _ := fs.ReadDir(root, dir) // without a driver there is none; sorted, as addresses are
	for i, e := range entries[:min(len(entries), MaxDevices)] {
		d := Device{Index: i, PCI: strings.ToLower(e.Name()), NUMA: -1}
		for line := range strings.Lines(text(root, path.Join(dir, e.Name(), "information"))) {
			key, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimSpace(value); key {
			case "Model":
				d.Name = value
			case "GPU UUID":
				d.UUID = value
			}
		}
		h.Devices = append(h.Devices, d)
	}
	h.Locate(root)
	return h
}

// Locate fills in the memory domains of the devices, and the processors near
// those for which none are known, from what the kernel tells below root.
func (h *Host) Locate(root fs.FS) {
	for i := range h.Devices {
		d := &h.Devices[i]
		d.NUMA = domain(root, d.PCI)
		if d.CPUs == "" && d.NUMA >= 0 {
			d.CPUs = text(root, "sys/devices/system/node/node"+strconv.Itoa(d.NUMA)+"/cpulist")
		}
	}
}

// domain returns the memory domain of a PCI device. Machines that have but one
// often do not tell.
func domain(root fs.FS, pci string) int {
	n, err := strconv.Atoi(text(root, "sys/bus/pci/devices/"+pci+"/numa_node"))
	if err == nil && n >= 0 {
		return n
	}
	domains, _ := fs.Glob(root, "sys/devices/system/node/node[0-9]*") // the pattern is sound
	if len(domains) == 1 && path.Base(domains[0]) == "node0" {
		return 0
	}
	return -1
}

// text returns what a file holds, "" if there is none.
func text(root fs.FS, file string) string {
	b, _ := fs.ReadFile(root, file)
	return strings.TrimSpace(string(b))
}

// driverVersion returns the number in what the NVIDIA driver says of itself.
func driverVersion(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	for _, word := range strings.Fields(line) {
		if strings.Count(word, ".") > 0 && strings.Trim(word, "0123456789.") == "" {
			return word
		}
	}
	return ""
}
