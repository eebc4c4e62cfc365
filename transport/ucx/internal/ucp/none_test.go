//go:build !linux || !cgo

package ucp

import (
	"strings"
	"testing"
)

func TestWithoutCThereIsNoUCX(t *testing.T) {
	if err := Load(); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=1") {
		t.Errorf("error %v: want one that says how to build it in", err)
	}
}
