package hostfile

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// CheckText returns an error for data that is no text, since it holds a zero byte: often a program
// given in place of a file of hosts. The error quotes no more than a few letters of the data.
func CheckText(data []byte) error {
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
