// Package compress has Hooks for package ddp that average gradients with fewer bytes.
package compress
