package ddp

import "fmt"

// ReadyRows is Ready for a parameter with rows, an embedding table. This pass's gradient of row
// rows[k] is values[k*Row:][:Row]. Values of a repeated row add up. Both slices are copied.
func (d *DDP) ReadyRows(i int, rows []int32, values []float32) {
	if !d.mayBeReady(i) {
		return
	}
	w := d.rows[i]
	if w == nil {
		d.note(fmt.Errorf("ddp: ReadyRows(%d): %q has no rows: want Ready", i, d.params[i].Name))
		return
	}
	if err := w.Add(rows, values); err != nil {
		d.note(fmt.Errorf("ddp: ReadyRows(%d): %w", i, err))
		return
	}
	d.endPass(i)
}

// Rows returns the gradient of parameter i, which has rows, after Finish: the average over ranks of
// the rows that any rank had, in ascending order, each once. All other rows have no gradient. The
// slices may be changed, and are valid until the first ReadyRows of the next step. For a parameter
// without rows, Rows returns nil.
//
//	rows, values := d.Rows(i)
//	for k, r := range rows {
//		step(table[int(r)*dim:][:dim], values[k*dim:][:dim])
//	}
func (d *DDP) Rows(i int) (rows []int32, values []float32) {
	if w := d.rows[i]; w != nil {
		return w.Result()
	}
	return nil, nil
}
