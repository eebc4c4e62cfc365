// Package bench is empty: the module's program is gompi-bench. The module is one of its own, so
// that what draws pages is required by nothing else.
package bench
