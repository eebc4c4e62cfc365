package mem

// A Scattered Space is host memory whose Buffers are not contiguous. The processor copies it at
// once: nothing waits for a device. Addresses in the Space are offsets in its elements' bytes.
type Scattered interface {
	Space
	// ReadOnly reports whether elements share bytes, so that nothing can be stored there.
	ReadOnly() bool
}

// IsScattered reports whether b is in a Scattered Space.
func (b Buffer) IsScattered() bool { return b.kind != nil && b.kind.scattered }

// IsReadOnly reports whether nothing can be stored in b.
func (b Buffer) IsReadOnly() bool { return b.kind != nil && b.kind.readOnly }

// OnDevice reports whether b is in memory outside the processor's reach.
func (b Buffer) OnDevice() bool { return !b.IsHost() && !b.kind.scattered }
