// Package compress has Hooks for package ddp that average gradients with fewer bytes:
//
//	hook, err := compress.PowerSGD(compress.PowerSGDOptions{Rank: 2, StartStep: 500})
//	...
//	d, err := ddp.New(ctx, c, model.Params(), ddp.Options{Hook: hook})
//
// Each rank makes a Hook of its own, with the same settings, for one DDP. It is not part of
// a snapshot: a job that goes on from one has forgotten what had not been sent.
//
// # Which one, and when none
//
// Compression pays where the network is slow. On one host all of them lose, since the copies through
// its memory are faster than any of these computations. Milliseconds of a step that does nothing but
// average 25 MiB of gradients, eight matrices of 800 by 1024, on two ranks (AMD EPYC, two
// virtual processors; hosts were network namespaces whose links carried so much each way; medians):
//
//	                  one host   10 Gbit/s   1 Gbit/s   100 Mbit/s
//	no Hook                  3          42        245         2191
//	FP16                    34          77        172         1114
//	BF16                    25          69        155         1095
//	PowerSGD, rank 2        30          62         35           42
//	PowerSGD, rank 8       169         217        151          166
//	TopK, 1 %              123          75         80          103
//
// The computation takes a processor that backward may want too. So:
//
//   - BF16 needs no thought: models that train in bfloat16 train with it. FP16 has three bits more and takes
//     a little longer, and loses gradients below 3e-8 times the number of ranks.
//   - PowerSGD sends least, and its bytes do not grow with the number of ranks. It changes what is
//     learned: compare a short run with plain averages, and begin after the first tenth of the steps.
//     It does nothing for models without large matrices.
//   - TopK is for few ranks, or gradients of which most numbers are near zero: its bytes grow with the
//     number of ranks. An embedding's gradient is better sent as rows: see ddp.Param.
//
// ddp.Stats counts the bytes of gradients, not those that a Hook sends.
package compress
