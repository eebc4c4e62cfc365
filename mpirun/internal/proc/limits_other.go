//go:build !linux

package proc

// CheckLimits is for Linux, where ranks run.
func CheckLimits() error { return nil }

// NameLimit is, too.
func NameLimit(err error) error { return err }

// CheckAgentLimits is, too.
func CheckAgentLimits() error { return nil }
