package nn

import (
	"gompi/comm"
	"gompi/comm/ddp"
)

// SGD is gradient descent with momentum and weight decay, as PyTorch defines them. Decay times the
// parameter is added to its gradient. A step goes along a sum of gradients in which older gradients
// fade by Momentum. Every rank steps its own copy.
type SGD struct {
	Momentum, Decay float32
	params          []*ddp.Param
	velocity        [][]float32
}

// NewSGD returns an SGD that has made no step.
func NewSGD(params []*ddp.Param, momentum, decay float32) *SGD {
	s := &SGD{Momentum: momentum, Decay: decay, params: params}
	for _, p := range params {
		s.velocity = append(s.velocity, make([]float32, len(p.Data)))
	}
	return s
}

// Memory returns SGD's memory from step to step: with the parameters, all that a job must save.
func (s *SGD) Memory() (all []ddp.Slice) {
	for i, p := range s.params {
		all = append(all, ddp.Slice{Name: "sgd.velocity/" + p.Name, Data: comm.Of(s.velocity[i])})
	}
	return all
}

// Step changes the parameters by their gradients.
func (s *SGD) Step(rate float64) {
	for i, p := range s.params {
		velocity, grad := s.velocity[i][:len(p.Data)], p.Grad[:len(p.Data)]
		for j, g := range grad {
			v := s.Momentum*velocity[j] + g + s.Decay*p.Data[j]
			velocity[j] = v
			p.Data[j] -= float32(rate) * v
		}
	}
}
