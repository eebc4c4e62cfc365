package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"gompi/comm/ddp"
	"gompi/examples/internal/nn"
)

// A header is the first line of a problem file, as JSON: its content, and the settings of the
// training. Then come all parameters in the order of the layers, a layer's matrix before its bias.
// The batches follow, each with its inputs, a row for each sample, and a byte for each sample: its
// class. Numbers are float32, little endian.
type header struct {
	Model    string  `json:"model"`
	Layers   []layer `json:"layers"`
	Inputs   int     `json:"inputs"` // numbers of a sample
	Classes  int     `json:"classes"`
	Rows     int     `json:"rows"` // samples of a batch
	Batches  int     `json:"batches"`
	Rate     float64 `json:"rate"` // of gradient descent
	Momentum float64 `json:"momentum"`
}

// A problem is the content of a file.
type problem struct {
	header
	stack   nn.Stack
	params  []*ddp.Param
	batches []batch
}

type batch struct {
	inputs  nn.Matrix
	classes []byte
}

// batchCount is the number of batches in a file. Step s of rank r of n takes batch s n + r, modulo
// the number of batches.
const batchCount = 20

// writeProblem writes the file of a model. Samples are random, and their classes depend on them by
// a rule that can be learned. rows is the length of a batch, 0 for the model's own.
func writeProblem(file, model string, rows int) error {
	m := models[model]
	if rows == 0 {
		rows = m.rows
	}
	h := header{Model: model, Layers: m.layers, Inputs: m.inputs, Classes: classes, Rows: rows, Batches: batchCount,
		Rate: m.rate, Momentum: 0.9}
	rng := rand.New(rand.NewPCG(1, 0x7374657073))
	stack, err := h.build(rng)
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	line, err := json.Marshal(h)
	write := func(data any) {
		if err == nil {
			err = binary.Write(w, binary.LittleEndian, data)
		}
	}
	write(append(line, '\n'))
	for _, p := range stack.Params() {
		write(p.Data)
	}
	for range h.Batches {
		inputs, targets := h.draw(rng)
		write(inputs)
		write(targets)
	}
	return errors.Join(err, w.Flush(), f.Close())
}

// draw makes a batch: the class is the index of the largest of the first numbers.
func (h header) draw(rng *rand.Rand) (inputs []float32, targets []byte) {
	for range h.Rows {
		class, sample := 0, make([]float32, h.Inputs)
		for i := range sample {
			sample[i] = float32(rng.NormFloat64())
			if i < h.Classes && sample[i] > sample[class] {
				class = i
			}
		}
		inputs, targets = append(inputs, sample...), append(targets, byte(class))
	}
	return inputs, targets
}

// readProblem reads a file of writeProblem.
func readProblem(file string) (*problem, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%w: want a file that steps -write made", err)
	}
	defer f.Close()
	p, err := decode(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

func decode(r *bufio.Reader) (*problem, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("first line %.40q: %w", line, err)
	}
	p := &problem{}
	if err := json.Unmarshal(line, &p.header); err != nil {
		return nil, fmt.Errorf("first line %.40q: want a header in JSON: %w", line, err)
	}
	const most = 1 << 20 // far above any model here
	if n := max(p.Rows, p.Inputs, p.Batches); min(p.Rows, p.Inputs, p.Batches) < 1 || n > most {
		return nil, fmt.Errorf("%d batches of %d rows of %d numbers: want 1 to %d of each", p.Batches, p.Rows,
			p.Inputs, most)
	}
	if p.stack, err = p.build(rand.New(rand.NewPCG(0, 0))); err != nil {
		return nil, err
	}
	p.params = p.stack.Params()
	for _, param := range p.params {
		if err := binary.Read(r, binary.LittleEndian, param.Data); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", param.Name, err)
		}
	}
	for i := range p.Batches {
		b := batch{nn.NewMatrix(p.Rows, p.Inputs), make([]byte, p.Rows)}
		if err := errors.Join(binary.Read(r, binary.LittleEndian, b.inputs.Data),
			binary.Read(r, binary.LittleEndian, b.classes)); err != nil {
			return nil, fmt.Errorf("batch %d: %w", i, err)
		}
		p.batches = append(p.batches, b)
	}
	if n, _ := r.Read(make([]byte, 1)); n > 0 {
		return nil, errors.New("more than its header says: want nothing behind the last batch")
	}
	return p, nil
}

// batchOf returns the batch of a rank in a step.
func (p *problem) batchOf(step, rank, ranks int) batch {
	return p.batches[(step*ranks+rank)%len(p.batches)]
}
