// Command libgompi is gompi for C, where it is built with -buildmode=c-shared: libgompi-core.so,
// which libgompi.so opens (shim/load.c, for why there are two). gompi.h says what the functions
// do.
//
// C knows communicators and requests by numbers (table.go). What C hands over becomes mem.Buffers
// without a copy (buffers.go), for the methods of core.Comm. No panic leaves Go.
package main

func main() {} // never called
