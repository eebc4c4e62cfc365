//go:build linux

package gompitorch

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// torchrun's c10d rendezvous on two nodes, each with a network and a name of its own: ranks share
// memory on a node, and have TCP between nodes.
func TestTorchrunsNodesMeetOverANetwork(t *testing.T) {
	b := torchBed(t)
	if _, status := b.Run(t, b.Python, "-c", "import torch; assert torch.__version__ >= '2'"); status != 0 {
		t.Skip("left out: torchrun before 2.0 has no --local_addr")
	}
	nodes := twoNetworks(t)
	output, status := make([]string, 2), make([]int, 2)
	var ended sync.WaitGroup
	for i, node := range nodes {
		argv := []string{"ip", "netns", "exec", node.name, "unshare", "--uts", "sh", "-c",
			`hostname ` + node.name + `; exec "$0" "$@"`,
			b.Python, "-m", "torch.distributed.run", "-r", "9:3", "-t", "9:3", "--nnodes", "2", "--nproc_per_node", "2",
			"--rdzv_id", "7", "--rdzv_backend", "c10d",
			"--rdzv_endpoint", nodes[0].address + ":29500", "--rdzv_conf", fmt.Sprintf("is_host=%d", 1-i),
			"--local_addr", node.address, "tests/nodes.py", node.device}
		ended.Go(func() { output[i], status[i] = b.Run(t, argv...) })
	}
	ended.Wait()
	tell(t, 4, "is there", output[0]+output[1], status[0]+status[1])
}

type network struct{ name, device, address string }

// twoNetworks makes two network namespaces with a device each, which are a cable's ends. They go
// when the test ends. It skips the test where that cannot be.
func twoNetworks(t *testing.T) [2]network {
	t.Helper()
	ip := func(arguments string) error {
		out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", arguments, err, out)
		}
		return nil
	}
	var nodes [2]network
	for i := range nodes {
		nodes[i] = network{fmt.Sprintf("gompi-torch-%d-%d", os.Getpid(), i), fmt.Sprintf("gt%d", i),
			fmt.Sprintf("10.113.0.%d", i+1)}
		if err := ip("netns add " + nodes[i].name); err != nil {
			t.Skipf("two networks need root, and ip (package iproute2): %v", err)
		}
		t.Cleanup(func() { ip("netns del " + nodes[i].name) })
	}
	commands := []string{fmt.Sprintf("-n %s link add %s type veth peer name %s netns %s", nodes[0].name,
		nodes[0].device, nodes[1].device, nodes[1].name)}
	for _, n := range nodes {
		for _, c := range []string{"link set lo up", "addr add " + n.address + "/24 dev " + n.device,
			"link set " + n.device + " up"} {
			commands = append(commands, "-n "+n.name+" "+c)
		}
	}
	for _, c := range commands {
		if err := ip(c); err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}
