package cudaops

// PTX75 is the kernels' text for the oldest devices.
var PTX75 = ptx75
