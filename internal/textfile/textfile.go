// Package textfile distinguishes files that people have typed from programs and other data given in
// their place.
package textfile

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// Check returns an error for data that is no text, since it holds a zero byte. The error quotes no
// more than a few letters of the data.
func Check(data []byte) error {
	if bytes.IndexByte(data, 0) < 0 {
		return nil
	}
	begin := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(data[:min(len(data), 8)]))
	return fmt.Errorf("it is no text, it begins with %q among other bytes", begin)
}
