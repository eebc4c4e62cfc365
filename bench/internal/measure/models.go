package measure

import "math"

// A Model is a name and the length of each parameter, from the first layer to the last, computed
// from the model's definition. Data-parallel training sends gradients of these lengths.
type Model struct {
	Name    string
	Lengths []int
}

// Size returns the number of parameters in all.
func (m Model) Size() int {
	n := 0
	for _, length := range m.Lengths {
		n += length
	}
	return n
}

// Models returns all models.
func Models() []Model {
	return []Model{
		{"resnet18", resnet([]int{2, 2, 2, 2}, basic, 1, 1000)},
		{"resnet18-cifar10", resnet([]int{2, 2, 2, 2}, basic, 1, 10)},
		{"resnet50", resnet([]int{3, 4, 6, 3}, bottleneck, 4, 1000)},
		{"bert-base", bert(12, 768, 30522, 512)},
		{"recommender", recommender(610, 9724)},
	}
}

// resnet is a residual network (He et al. 2015, table 1, for ImageNet's 1000 classes) of four
// stages of blocks, as torchvision builds it: convolutions without bias, each followed by a
// normalization with a weight and a bias per channel. If the number of channels changes, the first
// block of a stage projects its input.
func resnet(blocks []int, block func(in, width int) []int, expansion, classes int) []int {
	p := conv(3, 64, 7)
	in := 64
	for stage, n := range blocks {
		width := 64 << stage
		for range n {
			p = append(p, block(in, width)...)
			if out := width * expansion; in != out {
				p = append(p, conv(in, out, 1)...)
				in = out
			}
		}
	}
	return append(p, linear(in, classes)...)
}

func basic(in, width int) []int {
	return append(conv(in, width, 3), conv(width, width, 3)...)
}

func bottleneck(in, width int) []int {
	p := append(conv(in, width, 1), conv(width, width, 3)...)
	return append(p, conv(width, 4*width, 1)...)
}

// conv is a convolution and its normalization.
func conv(in, out, kernel int) []int { return []int{in * out * kernel * kernel, out, out} }

func linear(in, out int) []int { return []int{in * out, out} }

// bert is the encoder of Devlin et al. (2018): embeddings of words, positions and two segments;
// layers of attention and of two products with four times the width between them, each normalized;
// and a pooler.
func bert(layers, width, words, positions int) []int {
	norm := []int{width, width}
	p := append([]int{words * width, positions * width, 2 * width}, norm...)
	for range layers {
		for range 4 { // query, key, value, output
			p = append(p, linear(width, width)...)
		}
		p = append(p, norm...)
		p = append(p, linear(width, 4*width)...)
		p = append(p, linear(4*width, width)...)
		p = append(p, norm...)
	}
	return append(p, linear(width, width)...)
}

// recommender predicts a rating from an embedding of the user and one of the film, by one linear
// layer. MovieLens' ml-latest-small has 610 users and 9724 films. Widths of embeddings follow
// fastai's rule, 1.6 n^0.56.
func recommender(users, films int) []int {
	width := func(n int) int { return min(600, int(math.Round(1.6*math.Pow(float64(n), 0.56)))) }
	u, f := width(users), width(films)
	return append([]int{users * u, films * f}, linear(u+f, 1)...)
}
