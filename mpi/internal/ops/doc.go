// Package ops has the operators of reductions: predefined operators, including the operators of
// pairs, and the program's.
package ops
