package cudaops

// PTX is the kernels' text.
var PTX = ptx
