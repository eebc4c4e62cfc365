//go:build linux

package gompitorch

import "testing"

// What torch builds on collectives works as with gloo, in as many ranks, by gompirun and by torchrun.
func TestTorchModelsAcrossRanksAreGloos(t *testing.T) {
	b := torchBed(t)
	b.wants(t, "2.8")
	for _, c := range []struct{ script, end string }{
		{"parallel.py", "models across ranks are as with gloo"},
		{"compiled.py", "compiled programs are as with gloo"},
	} {
		for _, np := range []int{2, 4} {
			said, status := b.script(t, np, nil, c.script)
			tell(t, np, c.end, said, status)
		}
		said, status := b.torchrun(t, 2, c.script)
		tell(t, 2, c.end, said, status)
	}
}

// A checkpoint that four ranks save is what two load.
func TestTorchCheckpointsChangeTheirRanks(t *testing.T) {
	b := torchBed(t)
	b.wants(t, "2.8")
	dir := t.TempDir()
	said, status := b.script(t, 4, nil, "checkpoint.py", "save", dir)
	tell(t, 4, "save: checkpoints are whole", said, status)
	said, status = b.script(t, 2, nil, "checkpoint.py", "load", dir)
	tell(t, 2, "load: checkpoints are whole", said, status)
	said, status = b.torchrun(t, 2, "checkpoint.py", "load", dir)
	tell(t, 2, "load: checkpoints are whole", said, status)
}

// wants skips the test where torch is older.
func (b bed) wants(t *testing.T, oldest string) {
	t.Helper()
	if _, status := b.Run(t, b.Python, "-c", "import sys, torch; sys.exit(torch.__version__ < '"+oldest+"')"); status != 0 {
		t.Skip("torch is older than " + oldest)
	}
}
