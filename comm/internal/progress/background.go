package progress

import "context"

// InBackground returns a context whose collectives spin only while another goroutine has just begun
// to wait: else they leave the processors to threads that compute while they wait. Only the
// outermost context counts: so it costs a blocking collective a nanosecond to look. Go programs
// have nonblocking collectives; this is for C.
func InBackground(ctx context.Context) context.Context { return background{ctx} }

type background struct{ context.Context }

// IsInBackground reports whether InBackground has made ctx.
func IsInBackground(ctx context.Context) bool {
	_, is := ctx.(background)
	return is
}
