package mpirun

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"gompi/mpirun/internal/ctl"
)

// commit is the commit that make has built gompirun from, "" if go build has: then the binary's
// build information has it.
var commit string

// versionText is what -version prints.
func versionText() string {
	from := commit
	if from == "" {
		from = builtFrom()
	}
	return fmt.Sprintf("gompirun %s, commit %s (%s, %s/%s)", ctl.Version, from, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// builtFrom returns the commit in the binary's build information.
func builtFrom() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return "unknown"
	}
	revision, changed := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	return revision + changed
}
