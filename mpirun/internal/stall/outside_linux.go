package stall

import (
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// mostLookedInto is the most ranks of a host that are reported in detail.
const mostLookedInto = 8

// An Outsider is a rank whose program does not use gompi, as far as its agent knows.
type Outsider struct {
	*ctl.RankDoing
	Process int
	Output  string // the last lines of its output
}

// worker returns the process that does the work of a rank. ok is false for a process with
// gompi, as far as the agent knows.
func worker(process int) (pid int, ok bool) {
	for range 10 {
		if pid = proc.Worker(process); !proc.UsesGompi(pid) {
			return pid, true
		}
		if unix.Kill(pid, 0) == nil { // else a shell's child has ended meanwhile
			break
		}
	}
	return pid, false
}

// LookInto adds the kernel's and, with details, py-spy's knowledge of ranks, without interrupting
// them; without details what they and their children use, and the last line of output. It may
// block: the kernel may wait for the memory of a process, and py-spy takes a second.
func LookInto(ranks []Outsider, details bool) {
	var spies sync.WaitGroup
	left := mostLookedInto
	for _, d := range ranks {
		pid, ok := worker(d.Process)
		if !ok {
			continue
		}
		if d.Text = "is outside gompi: " + proc.Doing(pid); d.Kept != proc.Starves {
			d.Kept = "" // Doing has reported it
		}
		if !details {
			d.Counts.CPU, d.Counts.RSS = proc.UsedByTree(d.Process)
			said := strings.TrimRight(d.Output, "\r\n")
			d.Details = said[strings.LastIndexAny(said, "\r\n")+1:]
			continue
		}
		if left--; left < 0 {
			continue
		}
		d.Details = proc.Times(pid)
		if d.Output != "" {
			d.Details += "\nits last output:\n" + d.Output
		}
		spies.Go(func() { d.Details += proc.PythonStack(pid) })
	}
	spies.Wait()
}
