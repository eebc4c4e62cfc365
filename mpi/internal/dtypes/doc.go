// Package dtypes gives datatypes handles, names and attributes, and turns elements in C's memory
// into bytes that core moves, and back. It also has the operators that combine elements. Package
// typemap has the types themselves.
package dtypes
