package plan

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestDisplay(t *testing.T) {
	eight := cores(8)
	threaded := [][]int{{0, 2}, {1, 3}}
	tests := []struct {
		name     string
		hosts    []Host
		programs []Program
		policy   Policy
	}{
		{"one", []Host{{Name: "localhost", Cores: cores(2)}}, []Program{{Name: "./train"}}, Policy{}},
		{"unequal", []Host{{Name: "node01", Slots: 4, MaxSlots: 8, Cores: eight},
			{Name: "node02.cluster", Slots: 2, Cores: threaded}, {Name: "node03", Slots: 1}},
			[]Program{{Name: "./train", NP: 6}}, Policy{}},
		{"oversubscribed", []Host{{Name: "a", Slots: 1, Cores: cores(1)}, {Name: "b", Slots: 1, Cores: cores(2)}},
			[]Program{{Name: "hostname", NP: 12}}, Policy{Order: ByNode}},
		{"programs", []Host{{Name: "a", Slots: 2, Cores: eight, Numa: [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}},
			{Name: "b", Slots: 2, Cores: cores(2)}},
			[]Program{{Name: "./server", NP: 1}, {Name: "./client"}}, Policy{BindTo: BindNuma, PerNode: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Map(tt.hosts, tt.programs, tt.policy)
			if err != nil {
				t.Fatal(err)
			}
			got := p.Display()
			golden := filepath.Join("testdata", tt.name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestRangesFoldsRuns(t *testing.T) {
	tests := []struct {
		in   []int
		want string
	}{
		{nil, ""},
		{[]int{5}, "5"},
		{[]int{0, 1, 2, 3}, "0-3"},
		{[]int{0, 1, 4, 6, 7}, "0-1,4,6-7"},
	}
	for _, tt := range tests {
		if got := Ranges(tt.in); got != tt.want {
			t.Errorf("Ranges(%v) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestDisplayShowsGPUs(t *testing.T) {
	p, err := Map([]Host{dgx("a")}, []Program{{Name: "./train", NP: 2}}, Policy{GPUs: 2, BindTo: BindGPU})
	if err != nil {
		t.Fatal(err)
	}
	const want = `2 ranks on 1 host, by slot, gpus-per-rank 2, bind-to gpu
a: 2 ranks on 4 slots, 16 cores, 8 GPUs
  rank 0  local 0  cpus 0-3, gpu 0,1  ./train
  rank 1  local 1  cpus 4-7, gpu 2,3  ./train
`
	if got := p.Display(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
