// Package compress has Hooks for package ddp that average gradients with fewer bytes:
//
//	hook, err := compress.PowerSGD(compress.PowerSGDOptions{Rank: 2, StartStep: 500})
//	...
//	d, err := ddp.New(ctx, c, model.Params(), ddp.Options{Hook: hook})
//
// Each rank makes its own Hook, with the same settings, for one DDP. PowerSGD and TopK keep the
// unsent parts of gradients. ddp.MemoryOf returns them for package snapshot, so that a job that
// continues loses nothing.
//
// # Choosing a Hook
//
// Compression pays where the network is slow. On one host every Hook loses, since copies through
// the host's memory are faster than any of these computations. The table has milliseconds of a step
// that only averages 25 MiB of gradients, eight matrices of 800 by 1024, on two ranks
// (BenchmarkSteps; AMD EPYC, two virtual processors; hosts were network namespaces whose links had
// this rate each way; means):
//
//	                  one host   10 Gbit/s   1 Gbit/s   100 Mbit/s
//	no Hook                  3          28        218         2192
//	FP16                     6          40        130         1094
//	BF16                     6          28        120         1094
//	PowerSGD, rank 2        27          35         23           39
//	PowerSGD, rank 8        53          52         67           74
//	TopK, 1 %               54          41         57           76
//
// The times of FP16 and BF16 over links are with conversions in Go. On one host they convert with
// AVX2, which takes 18 and 7 ms off a step.
//
// Compression takes processor time from backward. So:
//
//   - BF16 changes little in training: it rounds to 8 bits. FP16 rounds to 11 bits, and loses
//     gradients below 3e-8 times the number of ranks.
//   - PowerSGD sends least, and its bytes do not grow with the number of ranks. It changes the
//     training result: compare a short run with plain averages, and begin after the first tenth
//     of the steps. Models without large matrices gain nothing.
//   - TopK is for few ranks, and for models without large matrices or whose gradients are mostly
//     near zero: its bytes grow with the number of ranks. Send the gradient of an embedding as
//     rows: see ddp.Param.
//
// ddp.Stats counts the bytes of gradients, not the bytes that a Hook sends.
package compress
