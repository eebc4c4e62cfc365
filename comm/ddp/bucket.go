package ddp

import (
	"gompi/comm"
)

// A bucket is a run of memory that holds the gradients of some parameters and
// is averaged over the ranks by one allreduce. Sending many small gradients as
// one message saves their latency; sending the model in several lets the first
// travel while the others are still computed.
type bucket struct {
	params  []int            // indexes, in the order in which their gradients lie in grads
	grads   comm.Buffer      // in host memory from comm.Alloc: ranks of one host average them in place
	sum     *comm.Persistent // averages grads in place, in host memory
	average comm.Request     // of this step, in host memory
	pending int              // parameters not yet ready in this step
}

// layout assigns parameters of the given sizes in bytes to buckets. Backward reaches
// the last parameter first, so the first bucket begins with the last one. A
// bucket holds at most its limit of bytes, or one parameter that is larger.
func layout(sizes []int, firstBytes, bytes int) [][]int {
	var buckets [][]int
	room := 0
	for i := len(sizes) - 1; i >= 0; i-- {
		size := sizes[i]
		if len(buckets) == 0 {
			room = firstBytes
			buckets = append(buckets, nil)
		} else if last := buckets[len(buckets)-1]; size > room && len(last) > 0 {
			room = bytes
			buckets = append(buckets, nil)
		}
		last := &buckets[len(buckets)-1]
		*last = append(*last, i)
		room -= size
	}
	return buckets
}
