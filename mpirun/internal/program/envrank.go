package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gompi/internal/env"
)

// A Node is one host of a job, as the ranks on it know it.
type Node struct {
	JobID      string
	Hosts      []string // names of all hosts of the job
	Counts     []int    // ranks of each
	Index      int      // of this host among them
	Ranks      []int    // of this host, by local rank
	MasterAddr string
	MasterPort int
}

// Size returns the number of ranks of the job.
func (n *Node) Size() int {
	size := 0
	for _, c := range n.Counts {
		size += c
	}
	return size
}

// Identity returns the variables that identify the process with a local rank, under the names of
// gompirun and of others: torchrun, Open MPI and the MPICH family. They replace existing values.
func (n *Node) Identity(local int) []string {
	rank, size := strconv.Itoa(n.Ranks[local]), strconv.Itoa(n.Size())
	localRank, localSize := strconv.Itoa(local), strconv.Itoa(len(n.Ranks))
	node := strconv.Itoa(n.Index)
	return []string{
		env.Rank + "=" + rank, env.Size + "=" + size, env.LocalRank + "=" + localRank, env.LocalSize + "=" + localSize,
		env.Node + "=" + node, env.JobID + "=" + n.JobID,
		env.TorchRank + "=" + rank, env.TorchSize + "=" + size,
		env.TorchLocalRank + "=" + localRank, env.TorchLocalSize + "=" + localSize,
		env.TorchMasterAddr + "=" + n.MasterAddr, env.TorchMasterPort + "=" + strconv.Itoa(n.MasterPort),
		env.TorchNode + "=" + node, env.TorchNodes + "=" + strconv.Itoa(len(n.Hosts)),
		env.TorchRoleName + "=default", env.TorchRoleRank + "=" + rank, env.TorchRoleSize + "=" + size,
		env.OMPIRank + "=" + rank, env.OMPISize + "=" + size,
		env.OMPILocalRank + "=" + localRank, env.OMPILocalSize + "=" + localSize,
		env.PMIRank + "=" + rank, env.PMISize + "=" + size,
		env.PMILocalRank + "=" + localRank, env.PMILocalSize + "=" + localSize,
		env.PMIHost + "=" + n.Hosts[n.Index],
	}
}

// perNode is Slurm's number of ranks on each node, if that is equal. Slurm sets the variable if
// the job was requested with a number of tasks for each node.
const perNode = "SLURM_NTASKS_PER_NODE"

// Slurm returns the variables that srun would set for a local rank, if around, its environment,
// is of a Slurm job; otherwise nothing. Scripts read their rank, the number of ranks and the
// first node from them. Slurm's own values describe the batch script or the agent's step.
// Variables about the job (SLURM_JOB_...) are right without a change.
func (n *Node) Slurm(local int, around []string) []string {
	if job, _ := EnvValue(around, "SLURM_JOB_ID"); job == "" {
		return nil
	}
	size, nodes := strconv.Itoa(n.Size()), strconv.Itoa(len(n.Hosts))
	counts := taskCounts(n.Counts)
	vars := []string{
		env.SlurmRank + "=" + strconv.Itoa(n.Ranks[local]), env.SlurmLocalRank + "=" + strconv.Itoa(local),
		env.SlurmNode + "=" + strconv.Itoa(n.Index), env.SlurmHostRanks + "=" + joined(n.Ranks),
		env.SlurmSize + "=" + size, env.SlurmProcs + "=" + size, env.SlurmStepSize + "=" + size,
		env.SlurmNodes + "=" + nodes, env.SlurmStepNodes + "=" + nodes,
		env.SlurmCounts + "=" + counts, env.SlurmStepCounts + "=" + counts,
		env.SlurmStepHosts + "=" + strings.Join(n.slurmNames(around), ","),
	}
	if _, ok := EnvValue(around, perNode); ok {
		vars = append(vars, perNode+"="+strconv.Itoa(slices.Max(n.Counts)))
	}
	return vars
}

// slurmNames returns the names of the nodes. With -standalone the only host has a name that Slurm
// does not know.
func (n *Node) slurmNames(around []string) []string {
	if name, _ := EnvValue(around, "SLURMD_NODENAME"); name != "" && len(n.Hosts) == 1 {
		return []string{name}
	}
	return n.Hosts
}

// taskCounts writes counts as Slurm does: 2(x3),1.
func taskCounts(counts []int) string {
	var parts []string
	for len(counts) > 0 {
		same := slices.IndexFunc(counts, func(c int) bool { return c != counts[0] })
		if same < 0 {
			same = len(counts)
		}
		part := strconv.Itoa(counts[0])
		if same > 1 {
			part += fmt.Sprintf("(x%d)", same)
		}
		parts, counts = append(parts, part), counts[same:]
	}
	return strings.Join(parts, ",")
}

// joined writes numbers with commas between.
func joined(numbers []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ",")
}

// ThreadEnv returns GOMAXPROCS and OMP_NUM_THREADS for a rank, as defaults. The rank is bound to
// cpus CPUs, 0 for none. All ranks of a host share its cores, and its quota of processors, unless
// that is 0. Go needs a second thread to overlap communication with computation.
func ThreadEnv(cpus, cores, quota, ranks int) []string {
	share := cpus
	if share == 0 {
		share = cores / ranks
	}
	if quota > 0 {
		share = min(share, quota/ranks)
	}
	return []string{
		fmt.Sprintf("%s=%d", env.GoProcs, max(2, share)),
		fmt.Sprintf("%s=%d", env.OMPThreads, max(1, share)),
	}
}

// GPUEnv returns variables that make a rank see the GPUs of a list in the order of their
// assignment; nothing for an empty list, so that the environment stays unchanged.
func GPUEnv(list string) []string {
	if list == "" {
		return nil
	}
	return []string{env.CUDADevices + "=" + list, env.CUDAOrder + "=PCI_BUS_ID"}
}

// settable are the variables of torchrun's ranks that users export by hand if no launcher does.
var settable = []string{
	env.TorchRank, env.TorchSize, env.TorchLocalRank, env.TorchLocalSize, env.TorchNode, env.TorchNodes,
	env.TorchMasterAddr, env.TorchMasterPort,
}

// Replaced describes the user's variables that have other values on the ranks of n's job:
// "MASTER_PORT=12340 by 41233". If a launcher's rank has called gompirun, the variables are its
// launcher's and none is the user's.
func (n *Node) Replaced(user []string) []string {
	for _, name := range []string{env.Rank, env.TorchRunID} {
		if _, ok := EnvValue(user, name); ok {
			return nil
		}
	}
	common := map[string]string{ // to all ranks
		env.TorchSize: strconv.Itoa(n.Size()), env.TorchNodes: strconv.Itoa(len(n.Hosts)),
		env.TorchMasterAddr: n.MasterAddr, env.TorchMasterPort: strconv.Itoa(n.MasterPort),
	}
	var changes []string
	for _, kv := range MergeEnv(user) {
		name := envName(kv)
		value, same := common[name]
		switch {
		case !slices.Contains(settable, name) || same && kv == name+"="+value:
		case same:
			changes = append(changes, fmt.Sprintf("%s by %s", kv, value))
		default:
			changes = append(changes, kv+" by what each rank is")
		}
	}
	slices.Sort(changes)
	return changes
}
