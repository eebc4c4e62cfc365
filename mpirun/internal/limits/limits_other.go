//go:build !linux

package limits

// Processes is for Linux, where ranks run.
func Processes() error { return nil }

// Explain is, too.
func Explain(err error) error { return err }
