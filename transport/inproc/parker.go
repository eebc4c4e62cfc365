package inproc

// A Parker sleeps on a channel, so that the goroutine counts as idle in a testing/synctest bubble
// and needs neither thread nor clock. A Parker implements transport.Parker.
type Parker struct {
	bell chan struct{} // capacity 1: a Wake is kept until received
}

// NewParker returns a Parker for one rank. For a testing/synctest bubble, call NewParker inside the
// bubble.
func NewParker() *Parker {
	return &Parker{bell: make(chan struct{}, 1)}
}

// Arm does nothing: a packet in the mailbox of a sleeping rank wakes that rank.
func (p *Parker) Arm() {}

// Disarm does nothing.
func (p *Parker) Disarm() {}

// C delivers after Wake.
func (p *Parker) C() <-chan struct{} { return p.bell }

// Wake makes C deliver.
func (p *Parker) Wake() {
	select {
	case p.bell <- struct{}{}:
	default:
	}
}
