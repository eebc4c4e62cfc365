//go:build !linux || !cgo || gompi_nocuda

package cudatest

const cgo = false
