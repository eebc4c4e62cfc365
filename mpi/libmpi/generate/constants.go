package main

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:embed constants.txt
var constantsText string

// A Constant is a number of MPI 5.0's binary interface.
type Constant struct {
	Name    string // with MPI_
	Value   int
	Chapter string
}

// Constants returns all that are no handles.
func Constants() (all []Constant) {
	chapter := ""
	for line := range strings.Lines(constantsText) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if fields[0] == "##" {
			chapter = strings.Join(fields[1:], " ")
			continue
		}
		value, err := strconv.Atoi(fields[0])
		if err != nil {
			panic(err) // a test finds the error
		}
		for i, name := range fields[1:] {
			all = append(all, Constant{"MPI_" + name, value + i, chapter})
		}
	}
	return all
}
