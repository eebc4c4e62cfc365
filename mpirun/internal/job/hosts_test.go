package job

import (
	"strings"
	"testing"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/plan"
)

func TestSlotsAreWhatIsCountedOnEachHost(t *testing.T) {
	for _, tt := range []struct {
		of   string
		each int // GPUs of a rank
		want []int
	}{
		{"", 0, []int{7, 7}}, {"cpu", 0, []int{3, 1}}, {"cpu", 2, []int{3, 1}}, {"auto", 0, []int{4, 1}},
		{"auto", 2, []int{2, 1}},
		{"auto", 3, []int{1, 1}}, {"gpu", 0, nil},
	} {
		hosts := []plan.Host{{Name: "a", Slots: 7, Cores: [][]int{{0, 1}, {2}}, GPUs: make([]plan.GPU, 4)},
			{Name: "b", Slots: 7}}
		j := &Job{spec: &cmdline.Spec{PerHost: cmdline.PerHost{Of: tt.of}, Policy: plan.Policy{GPUs: tt.each}}}
		if err := j.size(hosts); (err == nil) != (tt.want != nil) {
			t.Errorf("%s: %v", tt.of, err)
		} else if err == nil && (hosts[0].Slots != tt.want[0] || hosts[1].Slots != tt.want[1]) {
			t.Errorf("%s: %d and %d slots, want %v", tt.of, hosts[0].Slots, hosts[1].Slots, tt.want)
		} else if err != nil && !strings.Contains(err.Error(), "b has no NVIDIA GPU") {
			t.Errorf("%s: %v, which does not name b", tt.of, err)
		}
	}
}
