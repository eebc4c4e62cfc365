package ddp

import (
	"math"
	"math/rand/v2"
	"slices"

	"gompi/comm"
)

// A toy is a network of one hidden layer of tanh and its momentum, which learns a function of 4
// numbers. Its sums of float32 depend on the order in which they are made, as real ones do.
type toy struct {
	params   []*Param // w1, b1, w2
	momentum [][]float32
}

const toyIn, toyHidden = 4, 9

func newToy(seed uint64) *toy {
	r := rand.New(rand.NewPCG(seed, 1))
	m := &toy{}
	for _, p := range []*Param{
		{Name: "w1", Data: make([]float32, toyHidden*toyIn), Shape: []int{toyHidden, toyIn}},
		{Name: "b1", Data: make([]float32, toyHidden)}, {Name: "w2", Data: make([]float32, toyHidden)},
	} {
		for i := range p.Data {
			p.Data[i] = float32(r.NormFloat64()) / 2
		}
		m.params = append(m.params, p)
		m.momentum = append(m.momentum, make([]float32, len(p.Data)))
	}
	return m
}

// sample returns the i-th sample of the data set.
func sample(i int) (x [toyIn]float32, y float32) {
	r := rand.New(rand.NewPCG(uint64(i), 2))
	for j := range x {
		x[j] = float32(r.NormFloat64())
	}
	return x, float32(math.Sin(float64(x[0]+2*x[1]))) + x[2]*x[3]/2
}

// backward adds the gradients of these samples, times scale, to Grad, tells ready of each
// parameter, and returns the sum of the squared errors.
func (m *toy) backward(samples []int, scale float32, ready func(i int)) (loss float64) {
	w1, b1, w2 := m.params[0], m.params[1], m.params[2]
	for _, s := range samples {
		x, y := sample(s)
		var hidden [toyHidden]float32
		out := float32(0)
		for h := range hidden {
			sum := b1.Data[h]
			for j, v := range x {
				sum += w1.Data[h*toyIn+j] * v
			}
			hidden[h] = float32(math.Tanh(float64(sum)))
			out += w2.Data[h] * hidden[h]
		}
		loss += float64(out-y) * float64(out-y)
		dy := 2 * (out - y) * scale
		for h, a := range hidden {
			w2.Grad[h] += dy * a
			da := dy * w2.Data[h] * (1 - a*a)
			b1.Grad[h] += da
			for j, v := range x {
				w1.Grad[h*toyIn+j] += da * v
			}
		}
	}
	for i := len(m.params) - 1; i >= 0; i-- {
		ready(i)
	}
	return loss
}

// memory returns the momentum of each shard, a copy.
func (m *toy) memory(shards []ShardPart) (own []comm.Buffer) {
	for _, s := range shards {
		own = append(own, comm.Of(slices.Clone(m.momentum[s.Param][s.Begin:s.End])))
	}
	return own
}

// update makes a step of gradient descent with momentum, of these shards.
func (m *toy) update(shards []ShardPart, own []comm.Buffer) {
	for k, s := range shards {
		data, momentum := comm.Slice[float32](s.Data), comm.Slice[float32](own[k])
		for j, g := range comm.Slice[float32](s.Grad) {
			momentum[j] = 0.9*momentum[j] + g
			data[j] -= 0.03 * momentum[j]
		}
	}
}

// numbers returns all parameters, one after the other.
func (m *toy) numbers() (all []float32) {
	for _, p := range m.params {
		all = append(all, p.Data...)
	}
	return all
}
