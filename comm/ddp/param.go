package ddp

// A Param is one parameter of a model, as ddp sees it: a name for messages and
// two slices of one length. New gives Grad its memory; whoever computes
// gradients adds to it, and whoever optimises changes Data.
type Param struct {
	Name string
	Data []float32
	Grad []float32
}
