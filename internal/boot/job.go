package boot

import (
	"crypto/rand"

	"github.com/google/uuid"
)

// NewJob returns the name and the secret of a new job. Names sort by time.
func NewJob() (id string, secret [32]byte) {
	rand.Read(secret[:])
	return uuid.Must(uuid.NewV7()).String(), secret // the system's randomness does not fail
}
