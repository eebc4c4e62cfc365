//go:build !linux

package limits

// Check is for Linux, where ranks run.
func Check() error { return nil }

// Explain is, too.
func Explain(err error) error { return err }

// CheckAgent is, too.
func CheckAgent() error { return nil }
