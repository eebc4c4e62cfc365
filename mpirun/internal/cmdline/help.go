package cmdline

import "gompi/internal/cli"

// Help returns the texts of gompirun -h.
func Help() *cli.Help {
	p := &parser{spec: &Spec{}}
	set, _ := p.flags(true)
	return &set.Help
}

var jobHelp = cli.Help{
	Synopsis: []string{
		"gompirun [flags] program [args] [: [flags] program [args]]...", doctorHelp.Synopsis[0],
		psHelp.Synopsis[0], logsHelp.Synopsis[0], topHelp.Synopsis[0], killHelp.Synopsis[0], attachHelp.Synopsis[0], manHelp.Synopsis[0],
		completionHelp.Synopsis[0],
	},
	About: `Run program as the ranks of one job. Flags take one dash or two; after ":" the flags -np,
-H, -x, -wdir and -m belong to the next program. "doctor" examines the hosts instead, and
what is between them. Of jobs that run, "ps" lists yours, "logs" prints the last output of
one, "top" shows what their ranks do, "kill" ends one, and "attach" runs a debugger, dlv or
gdb, on a rank; "ps -a" and "logs" know those that are over, too. "man" shows the manual,
"completion" prints a shell's completion. -h behind these words says more.`,
	Status: `0 if all ranks end well; that of the first rank that fails, or 128+N
if signal N killed it; 124 after -timeout, 125 if the job could not be started, a
host was lost or output could not be written, 126 if the program cannot be executed,
127 if there is none, 130 after Ctrl-C; 1 without any arguments.`,
	Examples: []string{
		"gompirun -np 4 -hostfile hosts ./train",
		"gompirun -hostfile hosts ./train -epochs 10",
		"gompirun -np 8 -H node01:4,node02:4 -x GOMPI_LOG=info ./train",
		"gompirun -np 1 ./server : -np 3 ./client",
		"gompirun -standalone -nproc-per-node 4 train.py -epochs 10",
	},
	Before: `Run program as the ranks of one job on one host or many:

  gompirun -np 4 -hostfile hosts ./train`,
	After: `  -q, -v, -version      print less, print what is done, print the version
  -nproc-per-node N, -nnodes N, -standalone, -m, -torch-backend gompi
                        as torchrun

  gompirun -h all       all flags, and the exit statuses
  gompirun doctor       examine hosts and the network between them
  gompirun ps, logs, top, kill JOB, attach RANK
                        list jobs, show what one wrote and what ranks do, end a
                        job, debug a rank
  gompirun man, completion bash|zsh|fish
                        the manual; a script by which the shell completes

Other flags of mpirun, mpiexec, srun and torchrun are translated, ignored with
a line that says so, or refused with what to type instead (docs/options.md).
`,
}
