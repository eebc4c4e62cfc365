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
	differ, err := compare(ctx, c, describe(params, opts))
	if err != nil || differ == nil {
		return err
	}
	return fmt.Errorf("ddp: the model of %s is not rank 0's: rank 0 has %s, rank %d has %s", differ.ranks,
		line(differ.zero, differ.at), differ.rank, line(differ.theirs, differ.at))
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

// CheckReplicas returns an error on all ranks unless the parameters are equal on all of them, bit
// for bit. It reads the whole model, copied from a device after the stream's work, and sends a few
// bytes.
func (d *DDP) CheckReplicas(ctx context.Context) error {
	if err := d.syncStream(); err != nil {
		return err
	}
	digests := make([]string, len(d.params))
	for i, p := range d.params {
		data, err := bytesOf(p.Data)
		if err != nil {
			return fmt.Errorf("ddp: %q: %w", p.Name, err)
		}
		digests[i] = strconv.FormatUint(digest(data), 16)
	}
	differ, err := compare(ctx, d.c, digests)
	if err != nil || differ == nil {
		return err
	}
	return fmt.Errorf("ddp: the parameters of %s differ from rank 0's, first %q", differ.ranks, d.params[differ.at].Name)
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

// A difference is the first between the lines of rank 0 and of others.
type difference struct {
	ranks        string // with other lines than rank 0's, in words
	rank         int    // the first of them
	zero, theirs []string
	at           int // index of the line
}

// compare returns, on every rank, the difference of the ranks' lines, nil if there is none.
func compare(ctx context.Context, c *comm.Comm, lines []string) (*difference, error) {
	text := strings.Join(lines, "\n")
	all := make([]uint64, c.Size())
	if err := comm.Allgather(ctx, c, []uint64{digest([]byte(text))}, all); err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	var words []string
	differ := &difference{}
	for rank, other := range all {
		if other != all[0] {
			if words = append(words, strconv.Itoa(rank)); len(words) == 1 {
				differ.rank = rank
			}
		}
	}
	if len(words) == 0 {
		return nil, nil
	}
	if differ.ranks = "rank " + words[0]; len(words) > 1 {
		differ.ranks = "ranks " + few(words, 8)
	}
	zero, err := bcastText(ctx, c, 0, text)
	if err != nil {
		return nil, err
	}
	theirs, err := bcastText(ctx, c, differ.rank, text)
	differ.zero, differ.theirs = strings.Split(zero, "\n"), strings.Split(theirs, "\n")
	for differ.at < min(len(differ.zero), len(differ.theirs)) && differ.zero[differ.at] == differ.theirs[differ.at] {
		differ.at++
	}
	return differ, err
}

// few joins words, at most most of them.
func few(words []string, most int) string {
	if more := len(words) - most; more > 0 {
		words = append(words[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}
