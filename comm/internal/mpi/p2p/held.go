package p2p

import (
	"sync"

	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/comms"
	"gompi/comm/internal/mpi/dtypes"
	"gompi/comm/internal/mpi/table"
)

// takingOver is held while receives of the face become requests, so that no other thread posts a
// receive between.
var takingOver sync.Mutex

// TakeOver makes requests of the receives that the face holds, at the beginning of each call. Their
// handles stay.
func TakeOver() {
	if !comms.Holds() {
		return
	}
	takingOver.Lock()
	defer takingOver.Unlock()
	if comms.Holds() {
		comms.TakeOver(takeOver)
	}
}

func takeOver(h comms.Held, c *comms.Comm) {
	r := requestPool.Get().(*Request)
	r.c, r.active, r.Handle = c, true, abi.Handle(table.FirstHeld+h.Place)
	if h.Arrived {
		r.Finish(abi.Status{Source: int32(h.Source), Tag: int32(h.Tag), Bytes: int64(h.Bytes)})
	} else {
		r.isRecv, r.into = true, dtypes.Landing{Buffer: abi.Addr(h.Buf).Buffer(h.Bytes)}
		r.Op = c.P2P.Irecv(c.SourceOf(h.Source), tagOf(h.Tag), r.into.Buffer)
	}
	Requests.Set(r.Handle, r)
}
