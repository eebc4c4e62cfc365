// Package dtypes gives datatypes handles, names and attributes, and turns elements in C's memory
// into bytes that core moves, and back. What a type is, is package datatype's.
package dtypes
