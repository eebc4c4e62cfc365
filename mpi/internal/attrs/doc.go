// Package attrs has the attributes that communicators and datatypes carry: keyvals, with their
// functions to copy and to delete, and the attributes of the environment.
package attrs
