// Package sched has what ranks ask of the operating system's scheduler: to give the processor to
// another process, and short slices of time.
package sched
