package measure

import "testing"

// torchvision and the BERT paper's code give these numbers of parameters; the recommender has 610
// users in 58 dimensions and 9724 films in 274.
func TestModelsHaveTheirPublishedSizes(t *testing.T) {
	for _, want := range []struct {
		name          string
		tensors, size int
	}{{"resnet18", 62, 11689512}, {"resnet18-cifar10", 62, 11181642}, {"resnet50", 161, 25557032},
		{"bert-base", 199, 109482240}, {"recommender", 4, 2700089}} {
		found := false
		for _, m := range Models() {
			if m.Name != want.name {
				continue
			}
			found = true
			if len(m.Lengths) != want.tensors || m.Size() != want.size {
				t.Errorf("%s has %d parameters of %d numbers, want %d of %d", m.Name, len(m.Lengths), m.Size(),
					want.tensors, want.size)
			}
		}
		if !found {
			t.Errorf("there is no %s", want.name)
		}
	}
}
