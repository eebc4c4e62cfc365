package pmi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gompi/internal/boot/wire"
)

// A fakeHost has two clients and notes the events.
type fakeHost struct {
	*testing.T
	Server
	seen []string
}

func newFakeHost(t *testing.T) *fakeHost {
	h := &fakeHost{T: t}
	h.Server = Server{Callbacks: h, JobID: "j", Size: 4,
		Placement: []wire.Run{{Node: 0, Count: 2}, {Node: 1, Count: 2}},
		Clients:   []*Client{{Rank: 2}, {Rank: 3, Program: 1}}}
	return h
}

func (h *fakeHost) note(format string, args ...any) {
	h.seen = append(h.seen, fmt.Sprintf(format, args...))
}

func (h *fakeHost) Answer(c *Client, line []byte) {
	h.note("%d: %s", c.Rank, strings.TrimSuffix(string(line), "\n"))
}
func (h *fakeHost) Fence(puts []string)         { h.note("fence %q", puts) }
func (h *fakeHost) Fail(c *Client, text string) { h.note("fail %d: %s", c.Rank, text) }
func (h *fakeHost) Abort(c *Client, code int, reason string) {
	h.note("abort %d: %d %s", c.Rank, code, reason)
}

// expect checks the events since the last call.
func (h *fakeHost) expect(want ...string) {
	h.Helper()
	if !slices.Equal(h.seen, want) {
		h.Errorf("%q, want %q", h.seen, want)
	}
	h.seen = nil
}

// send has a client say lines.
func (h *fakeHost) send(client int, lines ...string) {
	h.Helper()
	for _, line := range lines {
		if err := h.Serve(h.Clients[client], line); err != nil {
			h.Errorf("%s: %v", line, err)
		}
	}
}

func TestWhatIsPutCanBeGotAfterTheBarrier(t *testing.T) {
	h := newFakeHost(t)
	h.send(0, "cmd=init pmi_version=1 pmi_subversion=1", "cmd=put kvsname=kvs_j key=k value=v",
		"cmd=get kvsname=kvs_j key=k", "cmd=barrier_in")
	h.expect("2: cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1", "2: cmd=put_result rc=0",
		"2: cmd=get_result rc=1 msg=key_not_found")
	if got := h.Clients[0].Doing(); got != "is in MPI_Init and waits for other ranks" ||
		h.Clients[1].State() != Silent {
		t.Errorf("%q, state %d of the other", got, h.Clients[1].State())
	}
	h.send(0, "cmd=barrier_in") // is in it
	h.send(1, "cmd=put kvsname=kvs_j key=l value=w", "cmd=barrier_in")
	h.expect("3: cmd=put_result rc=0", `fence ["k" "v" "l" "w"]`)
	h.Fenced([]string{"k", "v", "l", "w", "m", "x"})
	h.expect("2: cmd=barrier_out rc=0", "3: cmd=barrier_out rc=0")
	h.send(1, "cmd=get kvsname=kvs_j key=m", "cmd=get kvsname=other key=m",
		"cmd=get kvsname=kvs_j key=PMI_process_mapping", "cmd=finalize")
	h.expect("3: cmd=get_result rc=0 value=x", "3: cmd=get_result rc=1 msg=key_not_found",
		"3: cmd=get_result rc=0 value=(vector,(0,2,2))", "3: cmd=finalize_ack rc=0")
	if h.Clients[1].State() != Finalized {
		t.Errorf("state %d", h.Clients[1].State())
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	h := newFakeHost(t)
	for line, want := range map[string]string{
		"cmd=put kvsname=x key=k value=v":         "cmd=put_result rc=-1 msg=no such kvsname",
		"cmd=put kvsname=kvs_j key= value=v":      "cmd=put_result rc=-1 msg=key or value empty or too long",
		"cmd=put kvsname=kvs_j key=PMI_k value=v": "cmd=put_result rc=-1 msg=keys that begin with PMI_ are reserved",
		"cmd=put kvsname=kvs_j key=k value=" +
			strings.Repeat("v", 1<<11): "cmd=put_result rc=-1 msg=key or value empty or too long",
		"cmd=publish_name service=s port=p": "cmd=publish_result rc=-1 msg=gompirun has no name service",
		"cmd=dance":                         "cmd=dance_result rc=-1 msg=gompirun does not know this request",
	} {
		h.send(0, line)
		if len(h.seen) != 1 || strings.ReplaceAll(h.seen[0], "_", " ") != "2: "+strings.ReplaceAll(want, "_", " ") {
			t.Errorf("%.60s: %q, want %q", line, h.seen, want)
		}
		h.seen = nil
	}
	h.send(0, "mcmd=spawn", "totspawns=2", "spawnssofar=1", "endcmd", "mcmd=spawn", "spawnssofar=2")
	h.expect()
	h.send(0, "endcmd")
	if len(h.seen) != 1 || !strings.HasPrefix(h.seen[0], "2: cmd=spawn_result rc=-1") {
		t.Errorf("%q, want one refusal", h.seen)
	}
	if err := h.Serve(h.Clients[0], "nonsense"); err == nil {
		t.Error("nonsense is served")
	}
}

func TestABarrierInVainEndsTheJob(t *testing.T) {
	h := newFakeHost(t)
	h.Absent(0) // no client waits
	h.expect()
	h.send(1, "cmd=barrier_in")
	h.expect("fail 3: waits in MPI_Init for rank 0, which has ended with status 0", "3: cmd=barrier_out rc=-1")
	h.send(1, "cmd=barrier_in")
	h.expect("fail 3: waits in a barrier of PMI for rank 0, which has ended with status 0", "3: cmd=barrier_out rc=-1")

	h = newFakeHost(t)
	h.Mixed()
	h.expect()
	h.send(0, "cmd=barrier_in")
	h.expect("fail 2: waits in MPI_Init of its own MPI library, but other ranks of the job run on gompi, which it cannot reach: -mpi-lib gompi has all run on gompi")
	h.send(1, "cmd=abort exitcode=7 message=no")
	h.expect("abort 3: 7 no")
}
