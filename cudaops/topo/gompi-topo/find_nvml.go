//go:build linux && cgo

package main

import (
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gompi/cudaops/topo"
)

// find asks NVML, and the kernel for distances that NVML does not know.
func find() *topo.Host {
	h := ask(nvml.New())
	h.Locate(os.DirFS("/"))
	return h
}

// A survey asks NVML about all devices.
type survey struct {
	lib     nvml.Interface
	host    *topo.Host
	handles []nvml.Device // of host.Devices
	lost    nvml.Return   // the last device's error, if the device has become unusable
}

// ask returns the Host as lib knows it. Unknown fields are left zero. If lib fails, the Host has
// the reason.
func ask(lib nvml.Interface) *topo.Host {
	s := &survey{lib: lib, host: &topo.Host{}}
	// After a failed Init no other function may be called: the functions are missing, and the
	// dynamic linker ends the process.
	if ret := lib.Init(); ret != nvml.SUCCESS {
		s.host.Trouble = reason(ret)
		return s.host
	}
	defer lib.Shutdown()
	s.get("nvmlSystemGetDriverVersion", func() (ret nvml.Return) {
		s.host.Driver, ret = lib.SystemGetDriverVersion()
		return ret
	})
	count, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		s.host.Trouble = reason(ret)
		return s.host
	}
	s.devices(min(count, topo.MaxDevices))
	s.links()
	return s.host
}

// get calls question if the installed library has the function symbol, and reports whether it
// succeeded. Virtual machines and MIG slices often lack support for a function.
func (s *survey) get(symbol string, question func() nvml.Return) bool {
	if s.lib.Extensions().LookupSymbol(symbol) != nil {
		return false
	}
	ret := question()
	if ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED {
		s.lost = ret
	}
	return ret == nvml.SUCCESS
}

// devices queries each device. NVML numbers devices by PCI address. They are sorted by address
// nevertheless, unless a device is missing.
func (s *survey) devices(count int) {
	index := 0
	for i := range count {
		handle, ret := s.lib.DeviceGetHandleByIndex(i)
		if ret == nvml.ERROR_NO_PERMISSION {
			continue // another user's slice, which CUDA does not count either
		}
		s.lost = nvml.SUCCESS
		d := topo.Device{Index: index, NUMA: -1}
		index++
		if ret == nvml.SUCCESS {
			s.device(&d, handle)
			ret = s.lost
		}
		if ret != nvml.SUCCESS {
			s.host.Warnings = append(s.host.Warnings,
				strings.TrimSpace(fmt.Sprintf("GPU %d %s", d.Index, d.PCI))+" is left out: "+reason(ret))
			continue
		}
		s.host.Devices, s.handles = append(s.host.Devices, d), append(s.handles, handle)
	}
	if index == len(s.host.Devices) {
		s.sort()
	}
}

// sort sorts the devices by their PCI addresses.
func (s *survey) sort() {
	handleOf := map[int]nvml.Device{}
	for i, d := range s.host.Devices {
		handleOf[d.Index] = s.handles[i]
	}
	slices.SortStableFunc(s.host.Devices, func(a, b topo.Device) int { return strings.Compare(a.PCI, b.PCI) })
	for i := range s.host.Devices {
		d := &s.host.Devices[i]
		s.handles[i], d.Index = handleOf[d.Index], i
	}
}

var modes = map[nvml.ComputeMode]topo.Mode{
	nvml.COMPUTEMODE_DEFAULT: topo.Shared, nvml.COMPUTEMODE_EXCLUSIVE_THREAD: topo.ExclusiveThread,
	nvml.COMPUTEMODE_EXCLUSIVE_PROCESS: topo.ExclusiveProcess, nvml.COMPUTEMODE_PROHIBITED: topo.Prohibited,
}

// device queries the properties of one device.
func (s *survey) device(d *topo.Device, handle nvml.Device) {
	s.get("nvmlDeviceGetPciInfo", func() nvml.Return {
		pci, ret := handle.GetPciInfo()
		if ret == nvml.SUCCESS {
			d.PCI = address(pci)
		}
		return ret
	})
	s.get("nvmlDeviceGetUUID", func() (ret nvml.Return) {
		d.UUID, ret = handle.GetUUID()
		return ret
	})
	s.get("nvmlDeviceGetName", func() (ret nvml.Return) {
		d.Name, ret = handle.GetName()
		return ret
	})
	s.get("nvmlDeviceGetMemoryInfo", func() nvml.Return {
		memory, ret := handle.GetMemoryInfo()
		d.Memory, d.Used = memory.Total, memory.Used
		return ret
	})
	s.get("nvmlDeviceGetUtilizationRates", func() nvml.Return {
		rates, ret := handle.GetUtilizationRates()
		if busy := int(rates.Gpu); ret == nvml.SUCCESS {
			d.Busy = &busy
		}
		return ret
	})
	s.get("nvmlDeviceGetComputeMode", func() nvml.Return {
		mode, ret := handle.GetComputeMode()
		if ret == nvml.SUCCESS {
			d.Mode = modes[mode]
		}
		return ret
	})
	s.get("nvmlDeviceGetCpuAffinityWithinScope", func() nvml.Return {
		set, ret := handle.GetCpuAffinityWithinScope(mostCPUs, nvml.AFFINITY_SCOPE_NODE)
		if ret == nvml.SUCCESS {
			d.CPUs = list(set)
		}
		return ret
	})
	s.slices(d, handle)
}

// mostCPUs is Linux' limit.
const mostCPUs = 8192

// slices queries the MIG slices of a device.
func (s *survey) slices(d *topo.Device, handle nvml.Device) {
	most := 0
	d.MIG = s.get("nvmlDeviceGetMigMode", func() nvml.Return {
		mode, _, ret := handle.GetMigMode()
		if ret == nvml.SUCCESS && mode != nvml.DEVICE_MIG_ENABLE {
			return nvml.ERROR_NOT_SUPPORTED
		}
		return ret
	})
	if !d.MIG || !s.get("nvmlDeviceGetMaxMigDeviceCount", func() (ret nvml.Return) {
		most, ret = handle.GetMaxMigDeviceCount()
		return ret
	}) {
		return
	}
	for k := range min(most, topo.MaxDevices) {
		var slice topo.Slice
		found := s.get("nvmlDeviceGetMigDeviceHandleByIndex", func() nvml.Return {
			part, ret := handle.GetMigDeviceHandleByIndex(k)
			if ret == nvml.SUCCESS {
				slice.UUID, ret = part.GetUUID()
			}
			if ret == nvml.SUCCESS {
				slice.Name, _ = part.GetName()
				memory, _ := part.GetMemoryInfo()
				slice.Memory = memory.Total
			}
			return ret
		})
		if found { // there are gaps where slices have been destroyed
			d.Slices = append(d.Slices, slice)
		}
	}
}

// address formats a PCI address as the kernel does.
func address(pci nvml.PciInfo) string {
	return fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
}

// list formats a set of CPUs as Linux does: 0-3,8. The set's length means nothing: the binding
// makes the set eight times too long.
func list(set []uint) string {
	var parts []string
	first := -1
	for cpu := range len(set)*bits.UintSize + 1 {
		in := cpu < len(set)*bits.UintSize && set[cpu/bits.UintSize]>>(cpu%bits.UintSize)&1 == 1
		switch {
		case in && first < 0:
			first = cpu
		case !in && first >= 0:
			part := strconv.Itoa(first)
			if cpu-1 > first {
				part += "-" + strconv.Itoa(cpu-1)
			}
			parts, first = append(parts, part), -1
		}
	}
	return strings.Join(parts, ",")
}

// reason describes an error of NVML.
func reason(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "NVML: libnvidia-ml.so.1 cannot be loaded; is NVIDIA's driver installed?"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "NVML: NVIDIA's kernel driver is not loaded, or there is no GPU"
	case nvml.ERROR_NO_PERMISSION:
		return "NVML: no permission to use NVIDIA's driver (/dev/nvidiactl)"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "NVML: library and kernel driver have different versions; was the driver updated, and not loaded again?"
	case nvml.ERROR_GPU_IS_LOST:
		return "it has fallen off the bus; the host must be restarted"
	case nvml.ERROR_RESET_REQUIRED:
		return "it must be reset: nvidia-smi -r"
	}
	return fmt.Sprintf("NVML: %v (%d)", ret, int(ret))
}
