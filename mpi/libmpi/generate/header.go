package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// A prototype is how a header declares a function.
type (
	prototype = Prototype
	param     = Param
)

var (
	prototypeText = regexp.MustCompile(`(?m)^(?:OMPI_DECLSPEC\s+)?(\w[\w ]*?[ *]+)(MPI_\w+)\s*\(([^;{}()]*?)\)[^;{}]*;`)
	paramText     = regexp.MustCompile(`^(.*?)(\w+)((?:\[\w*\])*)$`)
	fortranText   = regexp.MustCompile(`parameter \((\w+)=(-?\d+)\)`)
)

// readPrototypes returns the functions that headers declare, by name. The first declaration
// counts, since MPICH's mpio.h has wrong ones of other functions.
func readPrototypes(files []string) (map[string]prototype, error) {
	all := map[string]prototype{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range prototypeText.FindAllStringSubmatch(string(text), -1) {
			if _, ok := all[m[2]]; ok || strings.HasPrefix(m[1], "typedef") {
				continue
			}
			p, err := parsePrototype(m[1], m[3])
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, m[2], err)
			}
			all[m[2]] = p
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no function of MPI is declared there", strings.Join(files, ", "))
	}
	return all, nil
}

func parsePrototype(result, params string) (prototype, error) {
	p := prototype{Result: strings.TrimSpace(result)}
	if params = strings.Join(strings.Fields(params), " "); params == "" || params == "void" {
		return p, nil
	}
	for _, s := range strings.Split(params, ",") {
		m := paramText.FindStringSubmatch(strings.TrimSpace(s))
		if m == nil {
			if strings.TrimSpace(s) == "..." {
				m = []string{"", "...", "", ""}
			} else {
				return p, fmt.Errorf("parameter %q: want a type and a name", s)
			}
		}
		p.Params = append(p.Params, param{Type: strings.TrimSpace(m[1]), Name: m[2], Array: m[3]})
	}
	return p, nil
}

// readFortranNumbers returns the numbers of Fortran's handles, by name.
func readFortranNumbers(file string) (map[string]int, error) {
	// Older headers of Open MPI lack these values of version 5, or have them in another header.
	all := map[string]int{"MPI_FILE_NULL": 0, "MPI_SESSION_NULL": 0, "MPIX_C_FLOAT16": 74}
	if file == "" {
		return all, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for _, m := range fortranText.FindAllStringSubmatch(string(text), -1) {
		all[m[1]], _ = strconv.Atoi(m[2])
	}
	return all, nil
}
