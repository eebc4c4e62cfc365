package progress

import (
	"runtime"
	"time"
)

// A program that tests in a loop has no driver: each Tested polls.

const (
	// testsPerClock is the number of unsuccessful tests between two looks at the clock, and the
	// number of unsuccessful tests in a row that do not yield.
	testsPerClock = 64
	// testsIn bounds the time of testsPerClock tests of a program that does nothing else between
	// them. If they take longer, the program computes, or other processes have used the processor.
	testsIn = testsPerClock * 20 * time.Microsecond
	// testsAwake is the number of unsuccessful tests that yield, on shared processors, before a
	// test sleeps: some milliseconds. Sleeps that end when a message comes are too long for a
	// program that also waits for its sends (HPCC's RandomAccess, 4 ranks on 2 processors: 0.08
	// million updates a second with 128, 0.5 with this).
	testsAwake = 4096
	// testSleep bounds the sleep of a test, for programs that also wait for other events.
	testSleep = 50 * time.Microsecond
	// testsPerYield is the number of unsuccessful tests, of a rank with a processor, between two
	// yields to other goroutines: a yield takes some microseconds if C has called.
	testsPerYield = 4096
)

// tests counts the tests in a row that have found nothing.
type tests struct {
	inVain int
	began  time.Time // when the last testsPerClock of them began
}

// Tested ends a test, such as MPI_Test, that has polled, with the result of Poll. While drivers
// spin, it lets other goroutines run now and then: a program that tests may do a little work
// between, on a processor of its own (HPCC's RandomAccess, 2 ranks: 0.8 million updates a second
// with sleeping tests, 2.3 without). Where processors are shared, after many tests in a row in vain
// Tested yields each time, and then sleeps, until there is something to poll, for testSleep at
// most: yields alone would keep other sessions from the processor (see the package comment).
func (p *Engine) Tested(found int) {
	t := &p.tests
	if found > 0 {
		t.inVain = 0
		return
	}
	if t.inVain%testsPerClock == 0 {
		now := time.Now()
		if t.inVain > 0 && now.Sub(t.began) > testsIn {
			t.inVain = 0
		}
		t.began = now
	}
	t.inVain++
	switch {
	case t.inVain <= testsPerClock:
	case p.spin > 0 && !p.Polled():
		if t.inVain%testsPerYield == 0 {
			p.unlockWhile(runtime.Gosched)
			p.recheckSpin()
		}
	case t.inVain <= testsAwake || p.Polled():
		p.unlockWhile(p.cfg.Yield)
	case p.cfg.Source.Arm():
		p.testSleep()
	}
}

func (p *Engine) testSleep() {
	if p.sleeper == nil {
		p.unlockWhile(func() { time.Sleep(testSleep) })
		return
	}
	p.unlockWhile(func() { p.sleeper.Sleep(testSleep) })
	p.passOn()
}
