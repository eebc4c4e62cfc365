package mpirun

import (
	"errors"
	"fmt"
	"io"

	"gompi/internal/cli"
	"gompi/internal/env"
	"gompi/mpirun/internal/doctor"
)

const doctorUsage = `usage: gompirun doctor [-hostfile F] [-H LIST] [flags]

Examines hosts and what is between them: logs in to each as a job would, looks at
what it grants and what it has, and lets each connect to each on the ports that
ranks would use. Prints tables, and below what to mend and how. The exit status is
0 if jobs can run on all hosts, 1 if not.

  -hostfile F, -machinefile the hosts
  -H LIST, -host LIST       hosts on the command line, or which of the hostfile's
  -port-range LO-HI         ports that ranks are to listen on (default: any)
  -iface LIST               interfaces and subnets for them to use (default: all)
  -rsh CMD, -launch-agent CMD, -start-timeout T
                            how hosts are logged in to, as for a job
`

// runDoctor runs gompirun doctor with the arguments after that word.
func runDoctor(args []string, stdout, stderr io.Writer) int {
	c, err := parseDoctor(args, func(line string) { fmt.Fprintf(stderr, "gompirun doctor: %s\n", line) })
	switch {
	case errors.Is(err, cli.ErrHelp):
		fmt.Fprint(stdout, doctorUsage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "gompirun doctor: %v\n", err)
		return statusFailed
	case !c.Run(stdout):
		return 1
	}
	return 0
}

// parseDoctor reads the command line. note is told how the lists of hosts were
// understood.
func parseDoctor(args []string, note func(string)) (*doctor.Checkup, error) {
	set := cli.New("gompirun doctor")
	var list, ports string
	var o options
	c := new(doctor.Checkup)
	set.StringVar(&o.hostfile, "hostfile", "", "")
	set.Alias("hostfile", "machinefile")
	set.StringVarP(&list, "host", "H", "", "")
	set.StringVar(&ports, "port-range", "", "")
	set.StringVar(&c.Interfaces, "iface", "", "")
	o.reachFlags(set)
	rest, err := set.Parse(args)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("argument %q: want flags only (gompirun doctor -h lists them)", rest[0])
	}
	if ports != "" {
		if c.Ports[0], c.Ports[1], err = env.ParsePorts(ports); err != nil {
			return nil, fmt.Errorf("-port-range %w", err)
		}
	}
	c.Limit = o.limit()
	return c, choosePatients(c, &o, list, note)
}

// choosePatients finds the hosts, as for a job, and what starts their agents.
func choosePatients(c *doctor.Checkup, o *options, list string, note func(string)) error {
	o.programs = []program{{hosts: list}}
	source, hosts, programs, err := planInput(o, here(), note)
	if err != nil {
		return err
	}
	if c.Starter, err = o.starter(source); err != nil {
		return err
	}
	c.Hosts = hosts
	if list != "" {
		c.Hosts = nil
		for _, share := range programs[0].Hosts {
			c.Hosts = append(c.Hosts, hosts[share.Host])
		}
	}
	return nil
}
