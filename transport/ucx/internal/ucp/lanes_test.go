package ucp

import (
	"slices"
	"testing"
)

func TestLanesAreReadFromWhatUCXPrints(t *testing.T) {
	const info = `#
# UCP endpoint
#
#               peer: node1:4711
#                 lane[0]:  4:rc_mlx5/mlx5_1:1.0 md[4]      -> md[4]/ib/sysdev[255] rma_bw#0 am am_bw#0
#                 lane[1]:  2:rc_mlx5/mlx5_0:1.0 md[3]      -> md[3]/ib/sysdev[255] rma_bw#1 am_bw#1
#                 lane[2]:  4:rc_mlx5/mlx5_1:1.0 md[4]      -> md[4]/ib/sysdev[255] wireup
`
	if got, want := lanes(info), []string{"rc_mlx5/mlx5_0:1", "rc_mlx5/mlx5_1:1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := lanes(""); got != nil {
		t.Errorf("of nothing: got %q", got)
	}
}
