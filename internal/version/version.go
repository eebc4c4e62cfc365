// Package version has the version of the programs and the commit they are built from.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Number is the version of all programs and libraries, written only here: the Makefile reads this
// line. Launcher and agents of one job have the same version.
const Number = "0.1.0"

// commit is the commit from which make has built a program. It is "" after go build: then the
// binary's build information has the commit.
var commit string

// Text is the output of a program's -version.
func Text(program string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)", program, Build(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Build is the version with its commit.
func Build() string {
	if commit != "" {
		return Number + ", commit " + commit
	}
	return Number + ", commit " + builtFrom()
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
