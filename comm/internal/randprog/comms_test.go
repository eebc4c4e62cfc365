package randprog

import (
	"errors"
	"fmt"
	"slices"

	"gompi/comm"
)

// A makeComm makes a communicator of the ranks of another, by Dup, Create, or Split.
type makeComm struct {
	header
	how    string
	makes  int   // its number
	colors []int // of each rank of the old one, for Split; the new one has color 0
	keys   []int
	group  []int // ranks of the old one, for Create
	rest   bool  // whether the others make one of their own, at the same time
}

func (m *makeComm) String() string {
	return fmt.Sprintf("%s makes %d; colors %v, keys %v, group %v, rest %v", m.how, m.makes, m.colors, m.keys,
		m.group, m.rest)
}

// of returns the ranks of the old communicator that are in the new one, in its order.
func (m *makeComm) of(size int) (ranks []int) {
	for r := range size {
		if m.how == "dup" || m.how == "split" && m.colors[r] == 0 {
			ranks = append(ranks, r)
		}
	}
	if m.how == "create" {
		return m.group
	}
	if m.how == "split" {
		slices.SortStableFunc(ranks, func(a, b int) int { return m.keys[a] - m.keys[b] })
	}
	return ranks
}

// apart reports whether a rank that is not in the new communicator gets another one.
func (m *makeComm) apart(rank int) bool {
	return m.how == "split" && m.colors[rank] > 0 || m.how == "create" && m.rest
}

func (m *makeComm) run(r *runner, c *comm.Comm) (err error) {
	if c == nil {
		return nil
	}
	var made *comm.Comm
	at := slices.Index(m.of(c.Size()), c.Rank())
	switch m.how {
	case "dup":
		made, err = c.Dup(r.ctx)
	case "split":
		made, err = c.Split(r.ctx, m.colors[c.Rank()], m.keys[c.Rank()])
	case "create":
		var g comm.Group
		if g, err = c.Group().Incl(m.group...); err == nil {
			if at < 0 && m.rest {
				g = c.Group().Difference(g)
			}
			made, err = c.Create(r.ctx, g)
		}
	}
	switch {
	case err != nil:
		return err
	case (made != nil) != (at >= 0 || m.apart(c.Rank())):
		return fmt.Errorf("rank %d gets a communicator: %v, want %v", c.Rank(), made != nil, made == nil)
	case made != nil && at < 0: // the others' is of no use
		return errors.Join(made.Barrier(r.ctx), made.Close(r.ctx))
	case made != nil && (made.Rank() != at || made.Size() != len(m.of(c.Size()))):
		return fmt.Errorf("rank %d is %v in the new communicator, want rank %d of %d", c.Rank(), made, at,
			len(m.of(c.Size())))
	}
	r.comms[m.makes] = made
	return nil
}

// A closeComm closes a communicator when all its ranks have done all they wanted there.
type closeComm struct{ header }

func (u *closeComm) String() string { return "close" }

func (u *closeComm) run(r *runner, c *comm.Comm) error {
	if c == nil {
		return nil
	}
	r.comms[u.on] = nil
	return errors.Join(c.Barrier(r.ctx), c.Close(r.ctx))
}
