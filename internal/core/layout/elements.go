package layout

// Elements are elements of a slice, in an order. They fit slices of any type.
type Elements struct {
	runs     Layout // of elements of one byte
	overlaps bool
}

// ElementsIn returns the elements in runs, of elements of one byte. overlaps says whether an
// element is named more than once.
func ElementsIn(runs Layout, overlaps bool) Elements { return Elements{runs, overlaps} }

// Runs returns where they are, of elements of one byte, and whether one is named more than once.
func (e *Elements) Runs() (runs Layout, overlaps bool) { return e.runs, e.overlaps }
