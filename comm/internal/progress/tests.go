package progress

import "time"

// How a program waits that tests in a loop: it has no driver, and polls in each Tested.

const (
	// testsPerClock is how many tests in vain come to one look at the clock, and how many in a row
	// give nothing away.
	testsPerClock = 64
	// testsIn is how long testsPerClock tests take at most if the program does nothing else between
	// them. If they take longer, it computes, or others have had the processor.
	testsIn = testsPerClock * 20 * time.Microsecond
	// testSleep is how long one test sleeps at most, which a program notices that also waits for
	// something else.
	testSleep = 50 * time.Microsecond
)

// tests counts the tests in a row that have found nothing.
type tests struct {
	inVain int
	began  time.Time // when the last testsPerClock of them began
}

// Tested is called at the end of a test, such as MPI_Test or MPI_Iprobe, that has polled, with what
// Poll returned. After many in a row in vain, as many as a driver polls before it yields, it yields
// each time, and then sleeps, until there is something to poll, for testSleep at most: yields alone
// would keep other sessions from the processor (see the package comment).
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
	switch free := testsPerClock + p.spin; {
	case t.inVain <= free:
	case t.inVain <= free+p.yields || p.Polled():
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
