package layout

// Elements are elements of a slice, in an order. They fit slices of any type.
type Elements struct {
	runs     Layout // of single bytes
	overlaps bool
}

// ElementsIn returns the elements in runs, a Layout of bytes. overlaps reports whether any element
// is named more than once.
func ElementsIn(runs Layout, overlaps bool) Elements { return Elements{runs, overlaps} }

// Runs returns the places of the elements, as a Layout of bytes, and whether some element is
// named more than once.
func (e *Elements) Runs() (runs Layout, overlaps bool) { return e.runs, e.overlaps }
