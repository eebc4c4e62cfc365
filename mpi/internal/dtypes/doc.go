// Package dtypes gives datatypes handles, names and attributes, and turns elements in C's memory
// into bytes that core moves, and back. Package typemap has the types themselves.
package dtypes
