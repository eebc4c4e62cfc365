package mem

import "golang.org/x/sys/cpu"

// levelsHere returns the loops of each level that this processor has.
func levelsHere() map[string]loops {
	levels := map[string]loops{"go": {}}
	if cpu.X86.HasAVX2 {
		levels["avx2"] = loopsOf[levelAVX2]
	}
	if vectors == loopsOf[levelAVX512] {
		levels["avx512"] = vectors
	}
	return levels
}
