package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"gompi/examples/internal/nn"
)

// A layer is a layer of a model in a problem file. The matrix of a linear layer has In rows and Out
// columns. The matrix of a conv has Out rows, each with the weights of the columns of the square,
// and of each column its K pixels. A picture is a row of its pixels, line by line. The In channels
// of a pixel are contiguous, in a picture as under a square.
type layer struct {
	Kind   string `json:"kind"` // linear, relu, conv, pool
	In     int    `json:"in,omitempty"`
	Out    int    `json:"out,omitempty"`
	K      int    `json:"k,omitempty"`      // side of the square of a conv, which is not padded
	Height int    `json:"height,omitempty"` // of the input picture of conv and pool, with In channels
	Width  int    `json:"width,omitempty"`
}

const classes = 10

// A model describes a problem.
type model struct {
	layers []layer
	inputs int
	rows   int     // of a rank's batch
	rate   float64 // of learning
}

// models are an MLP of 24 MiB; the network for MNIST of many tutorials, with few parameters and
// much work; and a deep MLP with as many bytes as ResNet-50, most of which can travel while
// backward computes.
var models = map[string]model{
	"mlp":  {perceptron(1024, 2048, 2), 1024, 32, 0.001},
	"cnn":  {convNet(), 28 * 28, 16, 0.0005},
	"deep": {perceptron(1024, 1024, 25), 1024, 8, 0.0001},
}

func modelNames() []string { return slices.Sorted(maps.Keys(models)) }

func perceptron(in, width, hidden int) []layer {
	var all []layer
	for range hidden {
		all = append(all, layer{Kind: "linear", In: in, Out: width}, layer{Kind: "relu"})
		in = width
	}
	return append(all, layer{Kind: "linear", In: in, Out: classes})
}

func convNet() []layer {
	return []layer{
		{Kind: "conv", In: 1, Out: 20, K: 5, Height: 28, Width: 28}, {Kind: "relu"},
		{Kind: "pool", In: 20, Height: 24, Width: 24},
		{Kind: "conv", In: 20, Out: 50, K: 5, Height: 12, Width: 12}, {Kind: "relu"},
		{Kind: "pool", In: 50, Height: 8, Width: 8},
		{Kind: "linear", In: 800, Out: 500}, {Kind: "relu"}, {Kind: "linear", In: 500, Out: classes},
	}
}

// oneWorker: matrix products use one goroutine, as the peers' use one thread.
const oneWorker = nn.Workers(1)

// build returns the layers with random weights from rng.
func (h header) build(rng *rand.Rand) (nn.Stack, error) {
	const most = 1 << 16 // of any of the numbers
	var s nn.Stack
	for i, l := range h.Layers {
		name, image := fmt.Sprintf("%s%d", l.Kind, i), nn.Image{Height: l.Height, Width: l.Width, Channels: l.In}
		if min(l.In, l.Out, l.K, l.Height, l.Width) < 0 || max(l.In, l.Out, l.K, l.Height, l.Width) > most {
			return nil, fmt.Errorf("layer %+v: want numbers from 0 to %d", l, most)
		}
		switch {
		case l.Kind == "relu":
			s = append(s, &nn.ReLU{})
		case l.Kind == "linear" && l.In > 0 && l.Out > 0:
			deviation := nn.BeforeReLU(l.In)
			if i == len(h.Layers)-1 {
				deviation = nn.Output(l.In)
			}
			s = append(s, nn.NewLinear(name, l.In, l.Out, deviation, oneWorker, rng))
		case l.Kind == "conv" && l.In > 0 && l.Out > 0 && l.K > 0 && min(l.Height, l.Width) >= l.K:
			conv, _ := nn.NewConvolution(name, image, l.K, l.Out, oneWorker, rng)
			s = append(s, conv)
		case l.Kind == "pool" && l.In > 0 && min(l.Height, l.Width) >= 2:
			pool, _ := nn.NewMaxPool(image)
			s = append(s, pool)
		default:
			return nil, fmt.Errorf("layer %+v: want linear, relu, conv or pool, with the sizes it needs", l)
		}
	}
	return s, nil
}
