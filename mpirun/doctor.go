package mpirun

import (
	"fmt"
	"io"
	"os"

	"gompi/internal/cli"
	"gompi/internal/env"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/doctor"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/program"
	"gompi/mpirun/internal/stdio"
)

// runDoctor runs gompirun doctor with the arguments after that word.
func runDoctor(args []string) int {
	spec, err := cmdline.ParseDoctor(args, func(line string) { fmt.Fprintln(stdio.Stderr, line) })
	if answered(err, stdio.Stdout) {
		return 0
	}
	var c *doctor.Config
	if err == nil {
		err = proc.CheckLimits()
	}
	if err == nil {
		c, err = newDoctorConfig(spec, func(line string) { fmt.Fprintf(stdio.Stderr, "gompirun doctor: %s\n", line) })
	}
	_, width, _ := screenSize(stdio.Stdout.File)
	switch {
	case err != nil:
		fmt.Fprintf(stdio.Stderr, "gompirun doctor: %v\n", err)
		return statusFailed
	case !c.Run(stdio.Stdout, width):
		return 1
	}
	return 0
}

// answered writes the help or the version for an error of a command's flags that asks for it, and
// reports whether the error does.
func answered(err error, w io.Writer) bool {
	return cli.New("gompirun").Answer(err, "", w)
}

// newDoctorConfig finds the hosts, as a job does, and the starter of their agents. note logs the
// interpretation of the lists of hosts.
func newDoctorConfig(spec *cmdline.Spec, note func(string)) (*doctor.Config, error) {
	c := &doctor.Config{Interfaces: spec.Interfaces, Limit: spec.Reach.Limit(),
		Environ: program.ForwardedEnv(os.Environ()), Dir: workingDir()}
	var err error
	if spec.PortRange != "" {
		if c.Ports[0], c.Ports[1], err = env.ParsePorts(spec.PortRange); err != nil {
			return nil, err
		}
	}
	source, hosts, programs, err := planInput(spec, here(), note)
	if err != nil {
		return nil, err
	}
	s, err := starter(spec.Reach, source)
	if err != nil {
		return nil, err
	}
	c.Starter, c.ByHand = s, s.ByHand
	c.Hosts = hosts
	if spec.Programs[0].Hosts != "" {
		c.Hosts = nil
		for _, share := range programs[0].Hosts {
			c.Hosts = append(c.Hosts, hosts[share.Host])
		}
	}
	return c, nil
}
