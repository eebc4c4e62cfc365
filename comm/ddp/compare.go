package ddp

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"gompi/comm"
)

// sameModel returns an error on all ranks unless all have the same options and parameters of the
// same names and lengths. Without this check another model on one rank would show by a wrong count
// in the first step, or never.
func sameModel(ctx context.Context, c *comm.Comm, params []*Tensor, opts Options) error {
	mine := describe(params, opts)
	differ, err := differing(ctx, c, digest([]byte(strings.Join(mine, "\n"))))
	if err != nil || len(differ) == 0 {
		return err
	}
	theirs, err := lines(ctx, c, differ[0], mine)
	if err != nil {
		return err
	}
	zero, err := lines(ctx, c, 0, mine)
	if err != nil {
		return err
	}
	i := 0
	for i < len(zero) && i < len(theirs) && zero[i] == theirs[i] {
		i++
	}
	return fmt.Errorf("ddp: the model of %s is not rank 0's: rank 0 has %s, rank %d has %s",
		ranks(differ), line(zero, i), differ[0], line(theirs, i))
}

// describe returns a line for the options and one for each parameter.
func describe(params []*Tensor, opts Options) []string {
	list := []string{opts.String()}
	for i, p := range params {
		text := fmt.Sprintf("parameter %d %q of %d %v", i, p.Name, p.Data.Len(), p.Data.Type())
		if p.Shape != nil {
			text += fmt.Sprintf(" with the shape %v", p.Shape)
		}
		if p.Row != 0 {
			text += fmt.Sprintf(" in rows of %d", p.Row)
		}
		list = append(list, text)
	}
	return list
}

func line(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return fmt.Sprintf("only %d parameters", len(list)-1)
}

// lines returns rank root's list on every rank.
func lines(ctx context.Context, c *comm.Comm, root int, list []string) ([]string, error) {
	text, err := bcastText(ctx, c, root, strings.Join(list, "\n"))
	return strings.Split(text, "\n"), err
}

// CheckReplicas returns an error on all ranks unless the parameters are equal on all of them, bit
// for bit. It reads the whole model, copied from a device after the stream's work, and sends a few
// bytes.
func (d *DDP) CheckReplicas(ctx context.Context) error {
	if err := d.syncStream(); err != nil {
		return err
	}
	digests := make([]uint64, len(d.params))
	var all []byte
	for i, p := range d.params {
		data, err := bytesOf(p.Data)
		if err != nil {
			return fmt.Errorf("ddp: %q: %w", p.Name, err)
		}
		digests[i] = digest(data)
		all = binary.LittleEndian.AppendUint64(all, digests[i])
	}
	differ, err := differing(ctx, d.c, digest(all))
	if err != nil || len(differ) == 0 {
		return err
	}
	zero, theirs := digests, append([]uint64(nil), digests...)
	if err := comm.Bcast(ctx, d.c, differ[0], theirs); err != nil {
		return err
	}
	if err := comm.Bcast(ctx, d.c, 0, zero); err != nil {
		return err
	}
	i := 0
	for i < len(zero)-1 && zero[i] == theirs[i] {
		i++
	}
	return fmt.Errorf("ddp: the parameters of %s differ from rank 0's, first %q", ranks(differ), d.params[i].Name)
}

// bytesOf returns the content of b, in host memory.
func bytesOf(b comm.Buffer) ([]byte, error) {
	if b.IsHost() {
		return b.HostSlice(), nil
	}
	data := make([]byte, b.Size())
	return data, b.Space().Copy(comm.Of(data), b)
}

// digest identifies data; a collision is too improbable to matter.
func digest(data []byte) uint64 {
	sum := sha256.Sum256(data)
	return binary.LittleEndian.Uint64(sum[:])
}

// differing returns, on every rank, the ranks whose digest is not rank 0's.
func differing(ctx context.Context, c *comm.Comm, digest uint64) ([]int, error) {
	all := make([]uint64, c.Size())
	if err := comm.Allgather(ctx, c, []uint64{digest}, all); err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	var differ []int
	for rank, other := range all {
		if other != all[0] {
			differ = append(differ, rank)
		}
	}
	return differ, nil
}

// ranks formats a list of ranks, at most eight of them.
func ranks(list []int) string {
	if len(list) == 1 {
		return "rank " + strconv.Itoa(list[0])
	}
	var words []string
	for _, r := range list[:min(8, len(list))] {
		words = append(words, strconv.Itoa(r))
	}
	if more := len(list) - 8; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return "ranks " + strings.Join(words, ", ")
}
