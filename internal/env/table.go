package env

// Names of the variables that gompirun sets for every rank. gompirun also sets the variables of
// other launchers, since programs and libraries look for them.
const (
	Rank      = "GOMPI_RANK"
	Size      = "GOMPI_SIZE"
	LocalRank = "GOMPI_LOCAL_RANK"
	LocalSize = "GOMPI_LOCAL_SIZE"
	Spares    = "GOMPI_SPARES"
	Node      = "GOMPI_NODE"
	JobID     = "GOMPI_JOB_ID"
	Joined    = "GOMPI_JOINED"
	StartNS   = "GOMPI_START_NS"
	Restarts  = "GOMPI_RESTARTS"

	BootFD   = "GOMPI_BOOT_FD"
	BootAddr = "GOMPI_BOOT_ADDR"
	SegFD    = "GOMPI_SEG_FD"
	BellFD   = "GOMPI_BELL_FD"

	TorchRank       = "RANK"
	TorchSize       = "WORLD_SIZE"
	TorchLocalRank  = "LOCAL_RANK"
	TorchLocalSize  = "LOCAL_WORLD_SIZE"
	TorchMasterAddr = "MASTER_ADDR"
	TorchMasterPort = "MASTER_PORT"
	TorchNode       = "GROUP_RANK"
	TorchNodes      = "GROUP_WORLD_SIZE"
	TorchRoleName   = "ROLE_NAME"
	TorchRoleRank   = "ROLE_RANK"
	TorchRoleSize   = "ROLE_WORLD_SIZE"
	TorchRunID      = "TORCHELASTIC_RUN_ID"
	TorchRestarts   = "TORCHELASTIC_RESTART_COUNT"

	TorchMaxRestarts = "TORCHELASTIC_MAX_RESTARTS"
	TorchErrorFile   = "TORCHELASTIC_ERROR_FILE"

	OMPIRank      = "OMPI_COMM_WORLD_RANK"
	OMPISize      = "OMPI_COMM_WORLD_SIZE"
	OMPILocalRank = "OMPI_COMM_WORLD_LOCAL_RANK"
	OMPILocalSize = "OMPI_COMM_WORLD_LOCAL_SIZE"

	PMIFD        = "PMI_FD"
	PMIRank      = "PMI_RANK"
	PMISize      = "PMI_SIZE"
	PMILocalRank = "MPI_LOCALRANKID"
	PMILocalSize = "MPI_LOCALNRANKS"
	PMIHost      = "PMI_HOSTNAME"

	SlurmRank       = "SLURM_PROCID"
	SlurmSize       = "SLURM_NTASKS"
	SlurmProcs      = "SLURM_NPROCS"
	SlurmLocalRank  = "SLURM_LOCALID"
	SlurmNode       = "SLURM_NODEID"
	SlurmNodes      = "SLURM_NNODES"
	SlurmCounts     = "SLURM_TASKS_PER_NODE"
	SlurmHostRanks  = "SLURM_GTIDS"
	SlurmStepSize   = "SLURM_STEP_NUM_TASKS"
	SlurmStepCounts = "SLURM_STEP_TASKS_PER_NODE"
	SlurmStepNodes  = "SLURM_STEP_NUM_NODES"
	SlurmStepHosts  = "SLURM_STEP_NODELIST"
	SlurmSlots      = "GOMPI_SLURM_SLOTS"

	GoProcs    = "GOMAXPROCS"
	OMPThreads = "OMP_NUM_THREADS"
	Unbuffered = "PYTHONUNBUFFERED"

	GlooInterface = "GLOO_SOCKET_IFNAME"
)

// Names of the variables that users set. gompirun passes them on to all ranks.
const (
	Boot          = "GOMPI_BOOT"
	Rendezvous    = "GOMPI_RDZV"
	Token         = "GOMPI_TOKEN"
	Transport     = "GOMPI_TRANSPORT"
	Tune          = "GOMPI_TUNE"
	Profile       = "GOMPI_PROFILE"
	Eager         = "GOMPI_EAGER"
	Short         = "GOMPI_SHORT"
	Deterministic = "GOMPI_DETERMINISTIC"
	Log           = "GOMPI_LOG"
	Iface         = "GOMPI_IFACE"
	RSH           = "GOMPI_RSH"
	PortRange     = "GOMPI_PORT_RANGE"
	FrameMAC      = "GOMPI_FRAME_MAC"
	Hostfile      = "GOMPI_HOSTFILE"
	MPILib        = "GOMPI_MPI_LIB"
	TimeLimit     = "MPIEXEC_TIMEOUT"
	NoColour      = "NO_COLOR"
	History       = "GOMPI_HISTORY"
	CUDADevices   = "CUDA_VISIBLE_DEVICES"
	LibCUDA       = "GOMPI_LIBCUDA"
	LibCUBLAS     = "GOMPI_LIBCUBLAS"
	LibNCCL       = "GOMPI_LIBNCCL"
	CUDA          = "GOMPI_CUDA"
	CUDAOrder     = "CUDA_DEVICE_ORDER"

	KeepScheduling = "GOMPI_KEEP_SCHEDULING"
	TorchBackend   = "GOMPI_TORCH_BACKEND"
)

// The readers of variables.
const (
	byBoot      = "internal/boot"
	byComm      = "comm"
	byTCP       = "transport/tcp"
	byPrograms  = "programs"
	byLibraries = "torch scripts"
	byMPICH     = "programs of the MPICH family"
	byRuntime   = "the Go runtime"
	byPython    = "Python"
	byLauncher  = "gompirun"
	byTorch     = "gompi_torch"
	byCUDA      = "cudaops"
	byDriver    = "CUDA"
)

// A Var describes one environment variable.
type Var struct {
	Name    string
	Default string // the value of an unset variable, "" if none
	Reader  string // the package or program that reads the variable
	Doc     string // one line
	Set     bool   // gompirun sets it for each rank
}

// Table returns all variables: first the ones that gompirun sets, then the ones that users set.
func Table() []Var { return append(launched(), settings()...) }

func launched() []Var {
	return []Var{
		{Rank, "", byBoot, "rank of this process in the job, from 0", true},
		{Size, "", byBoot, "number of ranks in the job", true},
		{LocalRank, "", byBoot, "rank among the ranks of this host, from 0; of a [replacement](recovery.md) (`-spares`) its place behind them, and LOCAL_RANK the number of the rank that it replaces", true},
		{LocalSize, "", byBoot, "number of ranks on this host", true},
		{Spares, "", byBoot, "places on this host for ranks that replace others, see `-spares`", true},
		{Node, "", byBoot, "index of this host in the job, from 0", true},
		{JobID, "", byPrograms, "UUID of the job", true},
		{Joined, "", byBoot, "GOMPI_JOB_ID and GOMPI_BOOT_ADDR, for the children of a rank that has called Init, which sets it: each is a job of one rank; under PMIx the step of Slurm that started its launcher", true},
		{StartNS, "", byPrograms, "when gompirun was started, in nanoseconds since 1970 by its host's clock", true},
		{Restarts, "", byPrograms, "how many of `-max-restarts` are used up", true},
		{BootFD, "", byBoot, "descriptor of the socket to this host's agent; gone after Init", true},
		{BootAddr, "", byBoot, "abstract unix socket of the agent, for ranks whose descriptors were closed by a wrapper; gone after Init", true},
		{SegFD, "", byBoot, "descriptor of the memory shared by this host's ranks; gone after Init", true},
		{BellFD, "", byBoot, "descriptor of the doorbell of local rank 0; the others follow it; gone after Init", true},
		{TorchRank, "", byLibraries, "as GOMPI_RANK", true},
		{TorchSize, "", byLibraries, "as GOMPI_SIZE", true},
		{TorchLocalRank, "", byLibraries, "as GOMPI_LOCAL_RANK", true},
		{TorchLocalSize, "", byLibraries, "as GOMPI_LOCAL_SIZE", true},
		{TorchMasterAddr, "", byLibraries, "address of the host of rank 0", true},
		{TorchMasterPort, "", byLibraries, "a port of that host, kept free for rank 0 to listen on", true},
		{TorchNode, "", byLibraries, "as GOMPI_NODE", true},
		{TorchNodes, "", byLibraries, "number of hosts in the job", true},
		{TorchRoleName, "", byLibraries, "`default`", true},
		{TorchRoleRank, "", byLibraries, "as GOMPI_RANK", true},
		{TorchRoleSize, "", byLibraries, "as GOMPI_SIZE", true},
		{TorchRunID, "", byLibraries, "the value of `-rdzv-id`, or GOMPI_JOB_ID of the first run", true},
		{TorchRestarts, "", byLibraries, "as GOMPI_RESTARTS", true},
		{TorchMaxRestarts, "", byLibraries, "the value of `-max-restarts`", true},
		{TorchErrorFile, "a file of the rank's own", byLibraries,
			"where torch's `@record` writes why a script failed, which gompirun reports; `-x` or the script may name another", true},
		{OMPIRank, "", byPrograms, "as GOMPI_RANK", true},
		{OMPISize, "", byPrograms, "as GOMPI_SIZE", true},
		{OMPILocalRank, "", byPrograms, "as GOMPI_LOCAL_RANK", true},
		{OMPILocalSize, "", byPrograms, "as GOMPI_LOCAL_SIZE", true},
		{PMIFD, "", byMPICH, "descriptor of a socket to the agent that speaks PMI-1; gone after Init", true},
		{PMIRank, "", byMPICH, "as GOMPI_RANK", true},
		{PMISize, "", byMPICH, "as GOMPI_SIZE", true},
		{PMILocalRank, "", byMPICH, "as GOMPI_LOCAL_RANK", true},
		{PMILocalSize, "", byMPICH, "as GOMPI_LOCAL_SIZE", true},
		{PMIHost, "", byMPICH, "name of this host in the job", true},
		{SlurmRank, "", byPrograms, "as GOMPI_RANK, inside a job of Slurm", true},
		{SlurmSize, "", byPrograms, "as GOMPI_SIZE, inside a job of Slurm", true},
		{SlurmProcs, "", byPrograms, "as SLURM_NTASKS", true},
		{SlurmLocalRank, "", byPrograms, "as GOMPI_LOCAL_RANK, inside a job of Slurm", true},
		{SlurmNode, "", byPrograms, "as GOMPI_NODE, inside a job of Slurm", true},
		{SlurmNodes, "", byPrograms, "as GROUP_WORLD_SIZE, inside a job of Slurm", true},
		{SlurmCounts, "", byPrograms, "ranks of each host, inside a job of Slurm, and so SLURM_NTASKS_PER_NODE where the job has that", true},
		{SlurmHostRanks, "", byPrograms, "ranks of this host, inside a job of Slurm", true},
		{SlurmStepSize, "", byPrograms, "as SLURM_NTASKS", true},
		{SlurmStepCounts, "", byPrograms, "as SLURM_TASKS_PER_NODE", true},
		{SlurmStepNodes, "", byPrograms, "as SLURM_NNODES", true},
		{SlurmStepHosts, "", byPrograms, "names of the hosts of the ranks, inside a job of Slurm", true},
		{SlurmSlots, "", byLauncher, "the job of Slurm and the tasks that it has on each node, for a gompirun that a rank starts", true},
		{GoProcs, "the rank's share of the cores, at least 2", byRuntime, "threads that run Go code at once", true},
		{GlooInterface, "on several hosts, the one that leads to MASTER_ADDR", byLibraries,
			"network interface of PyTorch's gloo", true},
		{Unbuffered, "1", byPython, "output of scripts is not buffered", true},
		{OMPThreads, "the rank's share of the cores, at least 1", byPrograms,
			"threads of OpenMP and BLAS libraries", true},
	}
}

func settings() []Var {
	return []Var{
		{Boot, "", byBoot + ", gompi_torch", "`alone`: be a job of one rank, whatever launcher's environment is visible; with gompi_torch, too, ranks that work alone then say nothing of it", false},
		{Rendezvous, "", byBoot, "`file:///a/shared/folder`: where ranks that another launcher started find each other, if they cannot otherwise", false},
		{Token, "", byBoot + ", gompirun", "a secret that is the same on all hosts: with it, ranks that torchrun started find each other by MASTER_ADDR and MASTER_PORT, and nodes where gompirun was started one by one know each other", false},
		{Transport, "", byComm, "`tcp`: use only this transport between ranks; `ucx`: RDMA between hosts, and say so if a rank lacks it: docs/rdma.md", false},
		{Tune, "", byComm, "algorithms over messages for some collectives, such as `allreduce:16k-:circulant`, and thresholds, such as `shm.ring.chunk=16k`: docs/tuning.md", false},
		{Profile, "", byComm, "has no effect any more: ranks measure which copy is fastest", false},
		{Short, "on", byComm, "short messages and collectives, and windows, of MPI programs on gompi's MPI libraries, within a host, without entering Go: off, on, or mix, which leaves some to Go, for tests", false},
		{Eager, "64K", byComm, "largest message, in bytes, that is sent before its receive is posted; not set, less within a host whose processors copy faster from where it lies (tuning.md)", false},
		{Deterministic, "0", byComm, "`1`: results that do not depend on algorithm, transport or message size", false},
		{KeepScheduling, "0", byComm, "`1`: Init leaves GOMAXPROCS and the time slices of this process's threads as they are", false},
		{Log, "", byComm, "logs on stderr, separated by commas: a level (`debug`, `info`, `warn`), a part (`tuning`, `tcp`, `ucx`), or `part=level`", false},
		{Iface, "", byTCP, "network interfaces or subnets to use, `^` before those not to use: `eth0,10.0.0.0/8,^docker0`", false},
		{RSH, "ssh", byLauncher, "command that logs in to other hosts, as `-rsh`", false},
		{PortRange, "any", byTCP, "ports to listen on: `20000-20999`", false},
		{FrameMAC, "0", byTCP, "`1`, on all ranks: each frame between hosts has a MAC, and addresses may be translated on the way; see docs/security.md", false},
		{Hostfile, "", byLauncher, "hostfile for command lines that have neither `-hostfile` nor `-H`", false},
		{MPILib, "", byLauncher, "the library on which MPI programs run, `gompi` or `own`, as `-mpi-lib`: docs/mpi.md", false},
		{TimeLimit, "", byLauncher, "seconds after which the job is ended, as `-timeout`, for command lines without it, as under other launchers", false},
		{NoColour, "", byLauncher, "not empty: gompirun's messages on a terminal have no colours, as if TERM is unset or `dumb`", false},
		{History, "1", byLauncher, "`0`: nothing is kept of jobs that are over, for `gompirun ps -a` and `logs`, in `gompi` below XDG_STATE_HOME or ~/.local/state", false},
		{CUDA, "", byComm, "`nccl`: collectives of long vectors that all ranks have on GPUs, each on its own, are done by NCCL, where it is found; rank 0's counts", false},
		{LibCUDA, "", byCUDA, "file to open as the CUDA driver, instead of libcuda.so.1", false},
		{LibCUBLAS, "", byCUDA, "file to open as cuBLAS, instead of libcublas.so.13, .12 or .11", false},
		{LibNCCL, "", byCUDA, "file to open as NCCL, instead of libnccl.so.2", false},
		{TorchBackend, "", byTorch, "`gompi`: PyTorch's scripts that ask for gloo, mpi, no backend or, where there is no GPU, nccl get gompi; `-torch-backend` sets it: docs/pytorch.md", false},
		{CUDADevices, "all", byLauncher, "GPUs that ranks may use, by number in the order of PCI addresses or by UUID; `-nproc-per-node gpu` counts them, and `-gpus-per-rank` gives each rank its part", false},
		{CUDAOrder, "", byDriver, "gompirun sets it to `PCI_BUS_ID` with `-gpus-per-rank` and `-bind-to gpu`, so that all count GPUs alike", false},
	}
}

// defaultOf returns the default of a variable that users set. Variables that gompirun sets have no
// default for processes without gompirun.
func defaultOf(name string) string {
	for _, v := range settings() {
		if v.Name == name && v.Default != "any" && v.Default != "all" {
			return v.Default
		}
	}
	return ""
}
