// Command wheel packs the results of make into a wheel, which pip installs: gompirun and its
// helpers, the libraries for MPI programs, and gompi_torch with its library and its C++ sources. It
// runs at the top of the repository.
//
//	wheel BIN LICENCES DIST [COMPILED]
//
// BIN has the programs and lib; DIST receives the wheel. COMPILED has gompi_torch's C++ part for
// versions of torch. Equal contents make equal wheels.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gompi/internal/version"
)

const (
	distInfo = "gompi-" + version.Number + ".dist-info/"
	data     = "gompi-" + version.Number + ".data/"
	scripts  = data + "scripts/"       // pip puts them into bin
	mpi      = data + "data/lib/gompi" // into lib/gompi, where gompirun looks
	ofTorch  = "gompi_torch/lib/torch/"
)

const metadata = `Metadata-Version: 2.1
Name: gompi
Version: ` + version.Number + `
Summary: MPI-style collectives and a launcher: gompirun, MPI's libraries, and a backend "gompi" of torch.distributed
Requires-Python: >=3.8
Description-Content-Type: text/markdown

gompirun starts programs on many hosts, as mpirun and torchrun do. MPI programs run on libraries in
lib/gompi, and gompicc compiles them. gompi_torch is a backend of torch.distributed, for any PyTorch that is installed:
for versions that the wheel has no C++ part for, that is compiled when it is first used. python -m gompi_torch says what there is.
`

// torch loads the first entry point when a program wants the backend "gompi", and the second at
// every import of torch.
const entryPoints = `[torch.distributed.backends]
gompi = gompi_torch:register

[torch.backends]
gompi = gompi_torch_autoload:autoload
`

func main() {
	if len(os.Args) < 4 || len(os.Args) > 5 {
		fmt.Fprintln(os.Stderr, "usage: wheel BIN LICENCES DIST [COMPILED]")
		os.Exit(2)
	}
	name, err := pack(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "wheel:", err)
		os.Exit(1)
	}
	fmt.Println(name)
}

// pack makes the wheel, with the files of the folders compiled, and returns its path.
func pack(bin, licences, dist string, compiled []string) (string, error) {
	w := wheel{}
	for _, name := range []string{"gompirun", "gompi-bench", "gompi-topo", "gompicc", "gompicxx"} {
		w.add(scripts+name, filepath.Join(bin, name))
	}
	for _, name := range []string{"libgompi.so", "libgompi-core.so", "gompi.h"} {
		w.add("gompi_torch/lib/"+name, filepath.Join(bin, "lib", name))
	}
	w.add(data+"data/share/gompi/valgrind.supp", filepath.Join(bin, "share/gompi/valgrind.supp"))
	w.add(mpi+"/libgompi-mpi.so", filepath.Join(bin, "lib/libgompi-mpi.so"))
	for _, part := range []string{"/abi/", "/bin/", "/openmpi/", "/mpich/"} {
		if folder := filepath.Join(bin, "lib", part); isDir(folder) { // a face is present if its mpi.h was installed
			w.addAll(mpi+part, folder)
		}
	}
	pc, err := os.ReadFile("mpi/libmpi/gompi-mpi.pc")
	w.err = errors.Join(w.err, err)
	w.write(data+"data/lib/pkgconfig/gompi-mpi.pc", strings.ReplaceAll(string(pc), "@VERSION@", version.Number))
	w.addAll("", "comm/gompi_torch/python")
	w.addAll("gompi_torch/src/", "comm/gompi_torch/src")
	for _, folder := range compiled {
		w.addAll(ofTorch, folder)
	}
	w.write("gompi_torch/_version.py", fmt.Sprintf("version = %q\n", version.Number))
	w.add(distInfo+"licenses/LICENSE", "LICENSE")
	w.addAll(distInfo+"licenses/", licences)
	tag, err := w.tag()
	if err := errors.Join(w.err, err); err != nil {
		return "", err
	}
	w.write(distInfo+"METADATA", metadata)
	w.write(distInfo+"entry_points.txt", entryPoints)
	w.write(distInfo+"WHEEL", "Wheel-Version: 1.0\nGenerator: gompi\nRoot-Is-Purelib: false\nTag: "+tag+"\n")
	w.write(distInfo+"RECORD", w.record(distInfo+"RECORD"))
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return "", err
	}
	name := filepath.Join(dist, "gompi-"+version.Number+"-"+tag+".whl")
	return name, w.zip(name)
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// addAll adds the files of a folder of the machine, by names that begin with prefix. Links, which
// wheels do not have, are left out.
func (w *wheel) addAll(prefix, folder string) {
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "__pycache__" {
			return fs.SkipDir
		}
		if d.IsDir() || d.Type()&fs.ModeSymlink != 0 || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		rel, err := filepath.Rel(folder, file)
		w.add(prefix+rel, file)
		return err
	})
	w.err = errors.Join(w.err, err)
}
