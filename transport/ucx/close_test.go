package ucx

import (
	"bytes"
	"errors"
	"runtime/debug"
	"testing"
	"time"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// Both ends of transfers that are under way, in both directions, can end at any moment: the
// process does not, and the other end hears of it.
func TestAWorkerEndsWithRequestsUnderWay(t *testing.T) {
	for polls := range 40 {
		t.Run("", func(t *testing.T) { endUnderWay(t, polls) })
	}
}

func endUnderWay(t *testing.T, polls int) {
	ranks := pair(t, 1, 1)
	meet(t, ranks)
	ranks[0].sendText(1, "hello")
	drive(t, "contact", func() bool { return len(ranks[1].got) > 0 }, ranks[0], ranks[1])
	payload := mem.Bytes(make([]byte, 4<<20))
	for i, r := range ranks {
		for range 2 {
			r.Send(world.Rank(1-i), &transport.Header{Kind: transport.Eager}, payload, 0)
		}
	}
	for range polls {
		ranks[polls%2].Poll(world.None)
		ranks[1-polls%2].Poll(world.None)
	}
	if !ranks[1].Close(true) {
		t.Fatal("a forced Close did not end")
	}
	drive(t, "the loss", func() bool { return ranks[0].lost[1] != nil }, ranks[0])
	if err := ranks[0].lost[1]; !errors.Is(err, transport.ErrCut) {
		t.Fatalf("lost with %v, want %v", err, transport.ErrCut)
	}
}

// The launcher's word counts, also about a rank that was never heard of.
func TestARankThatDiedIsLost(t *testing.T) {
	ranks := pair(t, 1, 1)
	meet(t, ranks)
	ranks[0].Ended(1, transport.ErrCut)
	ranks[0].sendText(1, "no rank receives this")
	if ranks[0].Arm() {
		t.Error("Arm says that there is nothing to do")
	}
	ranks[0].Poll(world.None)
	if err := ranks[0].lost[1]; !errors.Is(err, transport.ErrCut) {
		t.Errorf("lost with %v, want %v", err, transport.ErrCut)
	}
	if !ranks[0].Close(false) {
		t.Error("Close waits for a rank that has died")
	}
}

// Who sleeps is not woken as long as nothing comes.
func TestAnIdleRankSleeps(t *testing.T) {
	for _, transports := range []string{"tcp", "posix,cma"} {
		t.Run(transports, func(t *testing.T) {
			n := over(transports, false)(t, []transport.Sink{&rank{lost: map[world.Rank]error{}},
				&rank{lost: map[world.Rank]error{}}})
			defer n.Done()
			var ranks [2]*Transport
			for i, end := range n.Ends {
				ranks[i] = end.Transport.(*Transport)
				defer end.Close(true)
			}
			for _, size := range []int{8, 300_000} {
				ranks[0].Send(1, &transport.Header{Kind: transport.Eager}, mem.Bytes(make([]byte, size)), 0)
			}
			quiet := 0
			drive(t, "silence", func() bool {
				quiet++
				if ranks[0].Poll(1)+ranks[1].Poll(0) > 0 || ranks[0].Pending() || !ranks[1].peer(0).open {
					quiet = 0
				}
				return quiet > 1000
			})
			parker := n.Ends[1].Parker
			for !ranks[1].Arm() {
				ranks[1].Poll(world.None)
			}
			parker.Arm()
			defer parker.Disarm()
			select {
			case <-parker.C():
				t.Error("woken, although nothing has come")
			case <-time.After(100 * time.Millisecond):
			}
			ranks[0].Send(1, &transport.Header{Kind: transport.Eager}, mem.Bytes(make([]byte, 8)), 0)
			select {
			case <-parker.C():
			case <-time.After(acceptTime):
				t.Error("not woken by a frame")
			}
		})
	}
}

// A payload is right, wherever Go has its memory from by then: UCX would keep registrations of
// memory that the runtime gives back and takes anew.
func TestMemoryThatIsUsedAnewArrivesRight(t *testing.T) {
	transports := "tcp"
	if haveDevice() {
		transports = ""
	}
	ranks := pairOver(t, transports, 1, 1)
	meet(t, ranks)
	for round := range 100 {
		payload := bytes.Repeat([]byte{byte(round + 1)}, 1<<20)
		ranks[0].Send(1, &transport.Header{Kind: transport.Eager}, mem.Bytes(payload), 0)
		drive(t, "the payload", func() bool { return len(ranks[1].got) > round }, ranks[0], ranks[1])
		if ranks[1].got[round] != string(payload) {
			t.Fatalf("round %d: wrong bytes", round)
		}
		ranks[1].got[round] = ""
		debug.FreeOSMemory()
	}
}

// Over UD, UCX 1.13 gives up a peer that has never answered after 30 s, and may end the process
// then, as it does when it is to disconnect from one.
func TestAPeerThatNeverAnswersOverRDMAHarmsNothing(t *testing.T) {
	if !haveDevice() {
		t.Skipf("make rdma: %v", errDevice)
	}
	ranks := pairOver(t, "", 1, 1)
	meet(t, ranks)
	ranks[1].release()
	ranks[0].sendText(1, "no rank receives this")
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		ranks[0].Poll(1)
	}
	if len(ranks[0].lost) > 0 {
		t.Fatalf("lost %v: no rank has left or died", ranks[0].lost)
	}
	ranks[0].Ended(1, transport.ErrGone)
	drive(t, "the loss", func() bool { return errors.Is(ranks[0].lost[1], transport.ErrGone) }, ranks[0])
	drive(t, "the end", func() bool { return ranks[0].Close(false) }, ranks[0])
}
