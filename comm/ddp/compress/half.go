package compress

import (
	"context"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/internal/mem"
)

// FP16 returns a Hook that sends gradients as float16, in half the bytes: 11 significant bits, and
// magnitudes from 2^-24 to 65504.
//
// Each rank divides its gradient by the number of ranks in float32 and rounds the quotient to
// float16. An allreduce sums the quotients. So the result overflows only if a quotient, or a sum of
// some, does: then it is infinite, on all ranks. A quotient below 2^-14 has fewer significant bits,
// and one below 2^-25 is lost. The sum is rounded once if comm adds all ranks' numbers in one
// place, as in a host's memory. If comm adds them on their way, each of at most Size()-1 additions
// rounds. NaN and infinity reach all ranks, as in plain averages.
//
// FP16 costs the steps of an allreduce, half of its bytes, and two bytes of memory for each number
// of the largest bucket. It is fp16_compress_hook of PyTorch's DDP.
func FP16() ddp.Hook {
	return &half[comm.Float16]{name: "fp16"}
}

// BF16 is FP16 with bfloat16: 8 significant bits, and the range of float32. So only values that are
// lost or infinite in plain averages are so here. It is bf16_compress_hook of PyTorch's DDP.
func BF16() ddp.Hook {
	return &half[comm.BFloat16]{name: "bf16"}
}

// half is a Hook that sends numbers of T.
type half[T comm.Float16 | comm.BFloat16] struct {
	name string
	sums []T // of the present bucket, kept for the next
}

func (h *half[T]) String() string { return h.name }

func (h *half[T]) Average(ctx context.Context, c *comm.Comm, b *ddp.Bucket) error {
	h.sums = resize(h.sums, len(b.Grads))
	mem.Narrow(h.sums, b.Grads, float32(c.Size()))
	if err := comm.Allreduce(ctx, c, h.sums, h.sums, comm.Sum); err != nil {
		return err
	}
	mem.Widen(b.Grads, h.sums)
	return nil
}
