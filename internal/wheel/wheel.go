package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"debug/elf"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// A wheel is a list of files.
type wheel struct {
	files []file
	err   error // of a file that could not be added
}

type file struct {
	name string // in the wheel
	text []byte
	mode fs.FileMode
}

// add adds a file of the machine.
func (w *wheel) add(name, source string) {
	text, err := os.ReadFile(source)
	mode := fs.FileMode(0o644)
	if info, statErr := os.Stat(source); statErr == nil && info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	w.files = append(w.files, file{name, text, mode})
	w.err = errors.Join(w.err, err)
}

func (w *wheel) write(name, text string) {
	w.files = append(w.files, file{name, []byte(text), 0o644})
}

// record lists all files with their hashes, except for the list itself.
func (w *wheel) record(own string) string {
	var b strings.Builder
	for _, f := range w.files {
		sum := sha256.Sum256(f.text)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.text))
	}
	return b.String() + own + ",,\n"
}

// zip writes the wheel atomically.
func (w *wheel) zip(name string) error {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	for _, f := range w.files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(f.mode)
		entry, err := z.CreateHeader(h)
		if err == nil {
			_, err = entry.Write(f.text)
		}
		if err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := os.WriteFile(name+".tmp", b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

// tag returns the wheel's tag: any Python 3, and one machine type with the oldest glibc on which
// all of the wheel's programs and libraries start.
func (w *wheel) tag() (string, error) {
	minor, machine := 5, elf.EM_NONE // tags begin with glibc 2.5
	for _, f := range w.files {
		if !bytes.HasPrefix(f.text, []byte(elf.ELFMAG)) {
			continue
		}
		binary, err := elf.NewFile(bytes.NewReader(f.text))
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
		needs, err := w.glibc(binary, strings.HasPrefix(f.name, ofTorch))
		if err == nil && machine != elf.EM_NONE && machine != binary.Machine {
			err = fmt.Errorf("it is for %v, others are for %v", binary.Machine, machine)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
		minor, machine = max(minor, needs), binary.Machine
	}
	kinds := map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}
	if kinds[machine] == "" {
		return "", fmt.Errorf("programs for %v: want x86-64 or arm64", machine)
	}
	return fmt.Sprintf("py3-none-manylinux_2_%d_%s", minor, kinds[machine]), nil
}

// glibc returns the minor version of the oldest glibc 2 whose systems have all symbols that a file
// needs. The file may need only libraries of glibc and of the wheel, and what torch loads if it is
// for torch.
func (w *wheel) glibc(f *elf.File, forTorch bool) (minor int, err error) {
	libraries, err := f.ImportedLibraries()
	versioned := false
	for _, library := range libraries {
		base, _, _ := strings.Cut(library, ".")
		ofGlibc := slices.Contains([]string{"libc", "libpthread", "libdl", "ld-linux-x86-64", "ld-linux-aarch64"}, base)
		ofWheel := slices.ContainsFunc(w.files, func(other file) bool { return path.Base(other.name) == library })
		ofTorch := forTorch && slices.Contains([]string{"libstdc++", "libgcc_s", "libc10", "libtorch_cpu"}, base)
		if !ofGlibc && !ofWheel && !ofTorch {
			return 0, fmt.Errorf("it needs %s: want what is part of every glibc", library)
		}
		versioned = versioned || ofGlibc
	}
	if !versioned || err != nil {
		return 0, err
	}
	needed, err := f.DynamicVersionNeeds()
	for _, library := range needed {
		for _, need := range library.Needs {
			n, err := oldest(need.Dep)
			if err != nil {
				return 0, fmt.Errorf("it needs %s of %s: %w", need.Dep, library.Name, err)
			}
			minor = max(minor, n)
		}
	}
	return minor, err
}

// policies are PEP 600's, as auditwheel has them: the newest symbols of libstdc++ on systems with a
// glibc.
var policies = []struct{ glibc, glibcxx, cxxabi int }{
	{17, 19, 7}, {24, 22, 10}, {27, 24, 11}, {31, 28, 12}, {34, 29, 13}, {35, 30, 13}, {39, 33, 15},
}

// oldest returns the minor version of the oldest glibc 2 whose systems have symbols of a version.
func oldest(version string) (int, error) {
	n := 0
	is := func(format string) bool { _, err := fmt.Sscanf(version+".0", format, &n); return err == nil }
	switch {
	case is("GLIBC_2.%d"):
		return n, nil
	case is("GCC_3.%d"), is("GCC_4.%d"):
		return 0, nil
	}
	for _, p := range policies {
		if is("GLIBCXX_3.4.%d") && n <= p.glibcxx || is("CXXABI_1.3.%d") && n <= p.cxxabi {
			return p.glibc, nil
		}
	}
	return 0, errors.New("want a version like GLIBC_2.17, or of libstdc++ up to GLIBCXX_3.4.33")
}
