// Package errs is how MPI's functions fail: errors with their classes, classes and codes that
// programs add, error handlers, and what an error of core says to a user of MPI.
package errs
