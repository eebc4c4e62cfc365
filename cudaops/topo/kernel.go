package topo

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// FromKernel returns the kernel's knowledge of the GPUs below root, which is "/" except in tests:
// the GPUs of NVIDIA's driver, their names, UUIDs and places. Memory, slices, modes and links stay
// unknown. FromKernel starts no process and takes some hundred microseconds. A host without the
// driver has no devices.
func FromKernel(root fs.FS) *Host {
	h := &Host{Driver: driverVersion(text(root, "proc/driver/nvidia/version"))}
	const dir = "proc/driver/nvidia/gpus"
	entries, _ := fs.ReadDir(root, dir) // absent without a driver; sorted, so in the order of addresses
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

// Locate sets the devices' memory domains and unknown near processors from files of the kernel
// below root.
func (h *Host) Locate(root fs.FS) {
	for i := range h.Devices {
		d := &h.Devices[i]
		d.NUMA = domain(root, d.PCI)
		if d.CPUs == "" && d.NUMA >= 0 {
			d.CPUs = text(root, "sys/devices/system/node/node"+strconv.Itoa(d.NUMA)+"/cpulist")
		}
	}
}

// domain returns the memory domain of a PCI device. Machines with only one often do not report it.
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

// text returns the content of a file, "" if there is none.
func text(root fs.FS, file string) string {
	b, _ := fs.ReadFile(root, file)
	return strings.TrimSpace(string(b))
}

// driverVersion returns the number in the version text of the NVIDIA driver.
func driverVersion(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	for _, word := range strings.Fields(line) {
		if strings.Count(word, ".") > 0 && strings.Trim(word, "0123456789.") == "" {
			return word
		}
	}
	return ""
}
