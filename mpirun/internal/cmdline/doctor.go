package cmdline

import (
	"fmt"

	"gompi/internal/cli"
)

var doctorHelp = cli.Help{
	Synopsis: []string{"gompirun doctor [-hostfile F] [-H LIST] [flags]"},
	About: `Examines hosts and what is between them: logs in to each as a job would, looks at
what it grants and what it has, and lets each connect to each on the ports that
ranks would use. Prints tables, and below what to mend and how. The exit status is
0 if jobs can run on all hosts, 1 if not, 125 if the command line or the hostfile
is wrong.`,
}

// ParseDoctor reads the command line of gompirun doctor, without that word, into the Spec of a
// job on the same hosts, with one empty program. note gets a line for each ignored flag of
// another launcher.
func ParseDoctor(args []string, note func(line string)) (*Spec, error) {
	set := cli.New("gompirun doctor")
	set.Help = doctorHelp
	set.Habits(cli.LauncherHabits, note)
	s := &Spec{Programs: make([]Program, 1)}
	s.hostfileFlag(set)
	s.Programs[0].hostFlag(set)
	s.networkFlags(set)
	s.Reach.flags(set)
	rest, err := set.Parse(args)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("argument %q: want flags only (gompirun doctor -h lists them)", rest[0])
	}
	if err := s.checkPorts(); err != nil {
		return nil, err
	}
	return s, nil
}
