package comm_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestMain fails if goroutines are left when all tests have ended: bubbles see to
// it themselves, the tests over TCP are seen to here.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			fmt.Printf("%d goroutines before the tests, %d after them:\n%s\n", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
			code = 1
			break
		}
	}
	os.Exit(code)
}
