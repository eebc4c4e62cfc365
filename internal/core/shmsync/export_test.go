package shmsync

// Place returns where among its owner's blocks t's lies.
func (t Token) Place() int { return t.place() }
