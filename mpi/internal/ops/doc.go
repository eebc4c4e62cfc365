// Package ops has the operators of reductions: predefined ones, those of pairs, and the program's.
package ops
