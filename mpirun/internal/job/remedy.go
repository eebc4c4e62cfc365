package job

import "bytes"

// remedies maps messages of programs about missing requirements to advice.
var remedies = []struct{ prints, helps string }{
	{"No module named gompi_torch", gompiTorch},        // python -m
	{"No module named 'gompi_torch'", gompiTorch},      // import
	{"runtime.schedinit()", addressSpace},              // the end of Go's stack, when its start fails
	{`\r’: No such file or directory`, carriageReturn}, // env, of a #! line
	{`\r': No such file or directory`, carriageReturn},
}

const carriageReturn = `the #! line of the program ends in a carriage return, as Windows writes it: sed -i 's/\r$//' FILE takes these away`

const addressSpace = "Go finds too little address space: ulimit -v of the host is to be unlimited, or 1 GiB more"

const gompiTorch = "this Python has no gompi_torch: pip install gompi-*.whl, which make wheel puts into dist; see docs/pytorch.md"

// remedy returns advice for a program with this last output, "" if there is none.
func remedy(tail []byte) string {
	for _, r := range remedies {
		if bytes.Contains(tail, []byte(r.prints)) {
			return r.helps
		}
	}
	return ""
}
