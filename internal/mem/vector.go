package mem

// vectorKernel returns the kernel of op for t that is written for the vector
// unit of this processor, nil where the loop in Go is the best there is. It is
// asked once for every pair, while the table of kernels is made: the one place
// where assembly comes in, after a look at the processor's features. There is
// no such kernel for any processor so far.
func vectorKernel(Op, Type) kernel { return nil }
