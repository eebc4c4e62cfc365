// Command generate writes the layer between MPI programs and package mpi, from tables: functions.txt,
// kinds.txt, constants.txt and classes.txt.
//
//	generate go FILE
//	    Go functions that decode arguments, and call functions of the packages in FILE's folder
//	generate calls FILE
//	    the names of functions for package calls
//	generate errs FILE
//	    the error classes for package errs
//	generate c -header mpi.h,... -library libmpi.so DIR
//	    a face in C: functions.c and symbols.c
//	generate standard DIR
//	    the standard face in C, alike, and its mpi.h
//	generate shared FILE
//	    the header of types and constants shared by C and Go, from Go's source
//	generate docs FILE
//	    the page of functions, docs/mpi-functions.md
//
// A face has the prototypes of an installed header, and exports every name of the installed library
// and of newer ones: calls of functions that gompi lacks fail with the function's name.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%d arguments: want go, calls, errs, shared, standard, docs or c, and more", len(args))
	}
	switch verb, file := args[0], args[1]; verb {
	case "go":
		at, err := places(filepath.Dir(file), Functions())
		if err != nil {
			return err
		}
		return writeSource(file, func(w io.Writer) { writeGo(w, Functions(), at) })
	case "calls":
		return writeSource(file, func(w io.Writer) { writeCalls(w, Functions()) })
	case "errs":
		return writeClasses(file)
	case "c":
		return generateFace(args[1:])
	case "standard":
		return generateStandard(file)
	case "shared":
		return generateShared(file)
	case "docs":
		return os.WriteFile(file, docs(), 0o644)
	}
	return fmt.Errorf("%q: want go, calls, errs, shared, standard, docs or c", args[0])
}

// writeSource writes a file of Go.
func writeSource(file string, write func(io.Writer)) error {
	var b bytes.Buffer
	write(&b)
	code, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(file, code, 0o644)
}

func generateFace(args []string) error {
	flags := flag.NewFlagSet("generate c", flag.ContinueOnError)
	header := flags.String("header", "", "mpi.h and what declares its functions, separated by commas")
	library := flags.String("library", "", "the library whose names are exported")
	fortran := flags.String("fortran", "", "mpif-handles.h, where Fortran numbers handles of its own")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir := flags.Arg(0)
	protos, err := readPrototypes(strings.Split(*header, ","))
	if err != nil {
		return err
	}
	symbols, err := readSymbols(*library)
	if err != nil {
		return err
	}
	numbers, err := readFortranNumbers(*fortran)
	if err != nil {
		return err
	}
	return writeFace(dir, Functions(), protos, withNewer(symbols), numbers, false)
}

// writeFace writes the files of a face into dir.
func writeFace(dir string, functions []Function, protos map[string]prototype, symbols []symbol,
	numbers map[string]int, standard bool) error {
	var text, rest bytes.Buffer
	more, err := writeFunctions(&text, functions, protos, standard)
	if err != nil {
		return err
	}
	writePredefined(&text, numbers)
	writeSymbols(&rest, symbols, functions, more)
	if err := os.WriteFile(filepath.Join(dir, "functions.c"), text.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "symbols.c"), rest.Bytes(), 0o644)
}

// generateStandard writes the mpi.h of MPI 5.0's binary interface, and the face with the
// functions that this header declares.
func generateStandard(dir string) error {
	var b bytes.Buffer
	writeHeader(&b)
	header := filepath.Join(dir, "mpi.h")
	if err := os.WriteFile(header, b.Bytes(), 0o644); err != nil {
		return err
	}
	protos, err := readPrototypes([]string{header})
	if err != nil {
		return err
	}
	var symbols []symbol
	for name := range protos {
		symbols = append(symbols, symbol{name, 0}, symbol{"P" + name, 0})
	}
	slices.SortFunc(symbols, func(a, b symbol) int { return strings.Compare(a.name, b.name) })
	return writeFace(dir, Functions(), protos, symbols, nil, true)
}
