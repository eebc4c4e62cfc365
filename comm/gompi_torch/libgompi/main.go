// Command libgompi is the library of PyTorch's backend, gompi for C++, built with
// -buildmode=c-shared as libgompi-core.so. libgompi.so opens that library (shim/load.c says why
// there are two). gompi.h documents the functions.
//
// C knows communicators and requests by numbers (table.go). C's buffers become mem.Buffers without
// a copy, for the methods of core.Comm. No panic leaves Go.
package main

func main() {} // never called
