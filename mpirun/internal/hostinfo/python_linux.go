package hostinfo

import (
	"fmt"
	"strings"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/program"
)

// pythonTime bounds the run of python3. The launcher waits longer.
const pythonTime = 10 * time.Second

// versions is a program that prints versions in a line. It reads pip's files, because an import of
// torch takes seconds. The wheel gompi has gompi_torch. The working directory is left out: scripts
// have folders of their own.
const versions = `import sys
sys.path = [folder for folder in sys.path if folder]
found = [sys.version.split()[0]]
for package in "torch", "gompi":
    try:
        from importlib import metadata
        found.append(metadata.version(package) or "")
    except Exception:
        found.append("")
print(",".join(found + [sys.executable]))
`

// Python returns the python3 of ranks with an environment, which start in dir. It blocks for
// pythonTime at most.
func Python(vars []string, dir string) ctl.Python {
	dirs, _ := program.EnvValue(vars, "PATH")
	path, err := program.Find("python3", dir, dirs)
	if err != nil {
		return ctl.Python{}
	}
	out, err := output(pythonTime, vars, dir, path, "-c", versions)
	f := strings.SplitN(lastLine(string(out)), ",", 4)
	if err == nil && len(f) != 4 {
		err = fmt.Errorf("it printed %.80q, want its version", out)
	}
	if err != nil {
		return ctl.Python{Path: path, Version: err.Error()}
	}
	return ctl.Python{Version: f[0], Torch: f[1], GompiTorch: f[2], Path: f[3]}
}
