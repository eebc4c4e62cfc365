//go:build !linux || !cgo

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestWithoutCItSaysSo(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(nil, find, &out, &errs); status != 0 || !strings.Contains(out.String(), "built without C") {
		t.Errorf("status %d: %s", status, &out)
	}
}
