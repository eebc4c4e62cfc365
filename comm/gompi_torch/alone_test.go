//go:build linux

package gompitorch

import (
	"regexp"
	"strings"
	"testing"
)

// A rank 0 of several that works alone says so, once, and nobody else says anything.
func TestTorchRanksThatWorkAloneAreReported(t *testing.T) {
	b := NewBed(t)
	if _, status := b.Run(t, b.Python, "-c", autoloads); status == 9 {
		t.Skip("this torch calls nobody when it is imported")
	}
	const noGroup, ofOne = "there is no group of torch.distributed",
		`its group of torch.distributed, by "gloo", has one rank`
	const train = `
p = torch.nn.Parameter(torch.ones(1)); o = torch.optim.SGD([p], lr=0.1)
for _ in range(3): p.sum().backward(); o.step()
`
	const all = "dist.init_process_group('gloo'); dist.barrier()" // gloo fails on a rank whose peer leaves before
	const one = "dist.init_process_group('gloo', rank=0, world_size=1, store=dist.HashStore())"
	for name, c := range map[string]struct{ flags, script, want string }{
		"never made":   {"", train, noGroup},
		"destroyed":    {"", all + "; dist.destroy_process_group()" + train, noGroup},
		"of one":       {"", one + train, ofOne},
		"no step":      {"", one, ofOne},
		"none, unused": {"", "torch.ones(1)", ""},
		"of all":       {"", all + train + "dist.destroy_process_group()", ""},
		"one is meant": {"-x GOMPI_BOOT=alone", one + train, ""},
	} {
		t.Run(name, func(t *testing.T) {
			argv := append([]string{b.Gompirun, "-np", "2"}, strings.Fields(c.flags)...)
			output, status := b.Run(t, append(argv, b.Python, "-c",
				"import torch, torch.distributed as dist\n"+c.script)...)
			found := regexp.MustCompile(`(?m)^gompi_torch: rank 0 of 2 works alone, and so may all: (.*?)\. Want `).FindAllStringSubmatch(output, -1)
			switch {
			case status != 0 || strings.Count(output, "gompi_torch:") != len(found):
				t.Errorf("status %d:\n%s", status, output)
			case c.want == "" && len(found) > 0, c.want != "" && (len(found) != 1 || found[0][1] != c.want):
				t.Errorf("found %q, want %q once, or nothing", found, c.want)
			}
		})
	}
}
