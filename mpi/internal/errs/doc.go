// Package errs holds the errors of MPI's functions: errors with their classes, classes and codes
// that programs add, error handlers, and texts of core's errors for users of MPI.
package errs
