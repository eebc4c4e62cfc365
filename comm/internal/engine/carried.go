package engine

// Carried counts what has gone through a transport: frames that this rank has sent, and copies to
// and from its peers' memory that it has begun.
type Carried struct {
	Messages uint64
	Bytes    uint64 // of payload
}

func (c *Carried) add(bytes int) {
	c.Messages++
	c.Bytes += uint64(bytes)
}

// Carried returns what each transport has carried that has carried something, by name.
func (e *Engine) Carried() map[string]Carried {
	e.progress.Lock()
	defer e.progress.Unlock()
	all := map[string]Carried{}
	for _, page := range e.peers {
		for _, p := range page {
			if p == nil || p.tr == nil || p.carried.Messages == 0 {
				continue
			}
			c := all[p.tr.Name()]
			c.Messages += p.carried.Messages
			c.Bytes += p.carried.Bytes
			all[p.tr.Name()] = c
		}
	}
	return all
}
