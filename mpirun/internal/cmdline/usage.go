package cmdline

// Usage is the output of -h: the most needed flags of UsageAll, on one screen.
const Usage = `usage: gompirun [flags] program [args] [: [flags] program [args]]...

Run program as the ranks of one job on one host or many:

  gompirun -np 4 -hostfile hosts ./train

  -np N                 start N ranks (default: one for each slot)
  -hostfile F           hosts and their slots, one to a line: "node01 slots=4"
                        (default: what the batch system has granted, else here)
  -H LIST               hosts on the command line: node01:4,node02:4
  -N N                  at most N ranks on each host
  -map-by HOW           slot (fill a host, then the next), node (one on each in
                        turn), core, hwthread, l3cache, numa, package or
                        ppr:N:node
  -bind-to WHAT         core, hwthread, l3cache, numa, package, gpu or none
  -gpus-per-rank N      give each rank N GPUs of its host
  -x NAME[=value]       set a variable for the ranks
  -wdir DIR             working directory of the ranks
  -tag-output           begin each line of output with its rank
  -output-filename DIR  write the output of each rank to a file, too
  -stdin RANK|all|none  the rank that reads standard input (default: rank 0)
  -timeout T            end the job after T seconds, or 90s, 2m, 1h30m
  -max-restarts N       start all ranks again, up to N times, if one fails
  -rsh CMD              what logs in to other hosts (default: ssh)
  -display-map          print which rank runs where
  -report-bindings      print which CPUs and GPUs each rank has
  -q, -v, -version      print less, print what is done, print the version
  -nproc-per-node N, -nnodes N, -standalone, -m, -torch-backend gompi
                        as torchrun

  gompirun -h all       all flags, and the exit statuses
  gompirun doctor       examine hosts and the network between them
  gompirun ps, top, kill JOB, attach RANK
                        list jobs, show what ranks do, end a job, debug a rank

Other flags of mpirun, mpiexec, srun and torchrun are translated, ignored with
a line that says so, or refused with what to type instead (docs/options.md).
`

// UsageAll is the output of -h all. A test compares its flags with the declared flags.
const UsageAll = `usage: gompirun [flags] program [args] [: [flags] program [args]]...
       gompirun doctor [-hostfile F] [-H LIST]
       gompirun ps [-json | -prometheus] [JOB]
       gompirun top [-once] [-interval T] [JOB]
       gompirun kill [-signal NAME] JOB
       gompirun attach [-job ID] [-debugger CMD] RANK

Run program as the ranks of one job. Flags take one dash or two. "doctor" examines
the hosts instead, and what is between them. Of jobs that run, "ps" lists yours, "top"
shows what their ranks do, "kill" ends one, and "attach" runs a debugger, dlv or gdb,
on a rank. -h behind these words says more.

ranks and hosts
  -np N, -n N               start N ranks (default: one for each slot)
  -N N, -nproc-per-node N   at most N ranks of a program on each host: a number, gpu, cpu,
                            or auto, which is gpu where there is one and else cpu
  -ppn N                    N ranks on each host, and again N on each until all have
                            a place
  -hostfile F               hosts and their slots, one to a line: "node01 slots=4"
                            (default: the allocation of Slurm, PBS, LSF or Grid
                            Engine, which these lists choose from where there is one,
                            else this machine)
  -H LIST, -host LIST       hosts on the command line, or, with -hostfile, which of
                            them to use: a:4,b (one slot where no number is given)
  -rankfile F               where each rank runs: "rank 0=node01 slot=0-3", or
                            slot=1:0-3 for cores of package 1
  -map-by HOW               slot (default: fill a host, then the next), node (one on
                            each host in turn), core, hwthread, l3cache, numa or package
                            (fill a host, its ranks dealt out over those), ppr:N:node,
                            ppr:N:l3cache, ppr:N:numa or ppr:N:package; after it :PE=N
                            for N cores a rank, :SPAN for l3caches, numas or packages
                            of all hosts that get ranks alike
  -rank-by HOW              number the ranks of a program by slot (those of a host in
                            a row), node (one of each host in turn) or fill (in a
                            row those of each l3cache, numa or package of -map-by, too)
  -oversubscribe            allow more ranks than slots without a word (default: with a
                            line that says so); with =false, or as -nooversubscribe: refuse
  -bind-to WHAT             hwthread, core, l3cache, numa, package, gpu or none
                            (default: each rank has its share of the cores, or, if
                            they are some times as many as cores, one in turn; else
                            none); gpu: its share of those near its GPU
  -gpus-per-rank N          give each rank N GPUs of its host, and CUDA_VISIBLE_DEVICES
                            for them; neighbours share if N is 1 and GPUs are few
                            (default: each sees all)
  -cpu-list L               use these CPUs of each host alone: 0-3,8
  -use-hwthread-cpus        count hardware threads as cores

program
  -x NAME[=value]           set a variable for the ranks; the environment is handed
                            on in any case, to other hosts without HOME, USER,
                            SSH_... and the like
  -x-all NAME[=value]       the same for the ranks of all programs, before or after ":";
                            -x of a program takes precedence
  -wdir DIR                 working directory of the ranks
  -path DIRS                where to look for program before PATH
  -app F                    the programs stand in F, a line for each, as between ":"
  after ":" the flags -np, -H, -x, -wdir and -m belong to the next program

as torchrun
  -nnodes N                 how many hosts of the list to use; MIN:MAX if fewer will do
  -standalone               this machine alone, whatever a scheduler has granted
  -virtual-local-rank       -gpus-per-rank 1, and LOCAL_RANK is 0 on all ranks
  -m, -module               program is a Python module
  -no-python                run a program whose name ends in .py by itself (default:
                            under "python3 -u")
  -torch-backend gompi      a program that asks torch.distributed for gloo, mpi or, where
                            there is no GPU, nccl gets gompi: GOMPI_TORCH_BACKEND=gompi
                            (needs gompi_torch, see docs/pytorch.md)
  -rdzv-id NAME             what TORCHELASTIC_RUN_ID says to the ranks
  -node-rank R              which node this is, where one gompirun is started on each
                            (default: node 0 is where all meet, the others as they come)
  -rdzv-endpoint HOST:PORT  where they meet: at node 0 (default port 29400; also
                            -master-addr HOST -master-port PORT)
  -last-call T              how long a job that has MIN nodes waits for more (default 30);
                            later nodes are refused; nodes know each other by a token,
                            GOMPI_TOKEN, the same on all
  -master-addr, -master-port PORT
                            what MASTER_ADDR and MASTER_PORT say to the ranks
                            (default: the address of rank 0's host, and a port there
                            that is held until rank 0 listens on it)

network
  -port-range LO-HI         ports for the ranks to listen on (default: any)
  -iface LIST               interfaces and subnets for the ranks to use, those after
                            ^ not: eth0,10.0.0.0/8,^docker0 (default: all)

MPI programs
  -mpi-lib gompi|own        the library on which they run (default: those of Open MPI on
                            gompi's, those of MPICH and Intel MPI on their own)

other hosts
  -rsh CMD                  what logs in to them (default: ssh), as "ssh -p 2222 -i key"
  -launch-agent CMD         what runs a gompirun there (default: this one, found at the
                            same path, or sent)
  -fanout N                 from how many hosts on some start others, so that gompirun need
                            not log in to all (default 64; 0: it does)
  -preload-binary           send programs to hosts that do not have them
  -preload-files LIST       put copies of these files, a,b, into the ranks' working
                            directory on other hosts
  -start-timeout T          how long they may take to start (default 30; nodes that are
                            started one by one wait 10m for each other); if given,
                            hosts that refuse or do not resolve are tried again

input and output
  -stdin RANK|all|none      the rank that reads standard input (default: rank 0); on this
                            machine it has that itself, unless it is a terminal, and
                            what it does not read is left
  -tag-output               begin each line with [rank]<stdout>: or [rank]<stderr>:
  -timestamp-output         begin each line with the time
  -prepend-pattern P        begin each line with P, where %r is the rank, %l its number
                            on its host, %h the host, %p the number of that, %t the
                            second since 1970
  -local-ranks-filter LIST  show the output of these ranks of each host alone, as 0,1;
                            files get that of all
  -merge-stderr-to-stdout   stderr of a rank goes where its stdout goes
  -output-filename DIR      write each rank's output to a file, too, in
                            DIR/1/rank.0/stdout and so on, 2 for a second run (-max-
                            restarts); after it :nocopy (to the file alone) or :nojobid
                            (DIR/rank.0/stdout). Files that are there are overwritten;
                            further runs continue those of the first, and of patterns
  -outfile-pattern P, -errfile-pattern P
                            write each rank's stdout or stderr to the file P alone,
                            where %r and so on stand for the same; folders are made

ending
  -timeout T                end the job after T seconds, or 90s, 2m, 1h30m
  -kill-delay T             time between TERM and KILL (default 10); Ctrl-C sends the ranks
                            INT, and TERM 2 seconds later; once more kills at once
  -no-kill-children         what ranks have left running, as daemons, lives on when the
                            job has ended well (else it is killed)
  -max-restarts N           start all ranks again, up to N times, when one has failed
                            (default 0); the program continues from what it has saved
  -recover                  a rank that dies does not end the job: the others may continue
                            without it, by comm.Shrink (docs/recovery.md)
  -spares N                 with -recover: up to N ranks of each host that died may be
                            replaced by new processes, by comm.Restore (default 0)
  -min-np M                 when a host is lost, start again on the others, if they
                            had M ranks or more
  -heartbeat T              say when nothing has come of another host for T (default 5,
                            0: never); after 3 T it is lost

what happens
  -stall-warning T          say which ranks wait for which when ranks have been in one call
                            for T (default 30, 0: never); QUIT asks for the same
  -get-stack-traces         print stacks, too: with -stall-warning those of the ranks that
                            others wait for, at the time limit those of all: of programs
                            in Go, Python and C, of which gdb shows more
  -stats[=F]                at the end, print what the calls of all ranks took, by place in
                            the program, and which rank was late; or write it to F, as
                            F.json, .html, .csv or else text (docs/observe.md)
  -trace F                  write the latest calls of all ranks to F, for ui.perfetto.dev
  -display-map              print which rank runs where
  -do-not-launch            find out which rank would run where, and start none
  -report-pid F             write gompirun's process id to F, or - (stdout), + (stderr)
  -report-bindings          print which CPUs the kernel has bound each rank to, and
                            which GPUs it has
  -q                        print nothing but the reason of a failure
  -v                        print what gompirun does
  -version, -h, -h all      also "gompirun version", "gompirun help" and "gompirun help all"

Exit status: 0 if all ranks end well; that of the first rank that fails, or 128+N
if signal N killed it; 124 after -timeout, 125 if the job could not be started, a
host was lost or output could not be written, 126 if the program cannot be executed,
127 if there is none, 130 after Ctrl-C; 1 without any arguments.

examples
  gompirun -np 4 -hostfile hosts ./train
  gompirun -hostfile hosts ./train -epochs 10
  gompirun -np 8 -H node01:4,node02:4 -x GOMPI_LOG=info ./train
  gompirun -np 1 ./server : -np 3 ./client
  gompirun -standalone -nproc-per-node 4 train.py -epochs 10
`
