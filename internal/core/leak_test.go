package core_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"gompi/cudaops/cudatest"
	"gompi/internal/core"
	"gompi/internal/env"
)

// ranksAtOnce is GOMAXPROCS here. Ranks of a host are processes, and here goroutines of one: a rank
// that blocks its thread while it waits must not keep a P from the others (two processors,
// TestCollectivesOfCUDAMemoryInHostsGoInChunks at load 50: more than 200 s with 2, 78 s with 16).
const ranksAtOnce = 16

// programs are what a process of this test is instead, if the variable is set that has the name.
var programs = map[string]func(value string){}

// TestMain fails if goroutines of ours are left when all tests have ended:
// bubbles see to it themselves, the tests over TCP are seen to here.
func TestMain(m *testing.M) {
	for variable, program := range programs {
		if value := os.Getenv(variable); value != "" {
			program(value)
		}
	}
	os.Setenv("FAKECUDA_DEVICES", "4") // one for each rank, where that matters
	core.UntuneMachine()               // one machine's tests are another's
	cudatest.Use()
	if flag.Parse(); flag.Lookup("test.bench").Value.String() == "" && os.Getenv(env.GoProcs) == "" {
		usual := runtime.GOMAXPROCS(max(ranksAtOnce, runtime.NumCPU()))
		os.Setenv(env.GoProcs, strconv.Itoa(usual)) // for processes that are one rank
	}
	code := m.Run()
	for end := time.Now().Add(time.Minute); len(strays()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			fmt.Printf("goroutines are left:\n%s\n", strings.Join(strays(), "\n\n"))
			code = 1
			break
		}
	}
	os.Exit(code)
}

// strays returns the stacks of all goroutines that run code of this module, but
// for the one that asks.
func strays() (stacks []string) {
	buf := make([]byte, 1<<20)
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "gompi/") && !strings.Contains(g, "TestMain") {
			stacks = append(stacks, g)
		}
	}
	return stacks
}
