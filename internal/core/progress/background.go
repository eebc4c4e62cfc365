package progress

import "context"

// InBackground returns a context for goroutines that no thread of the program has called. Its
// collectives spin only while another goroutine has just begun to wait: else they leave the
// processors to threads that compute while they wait. Its waits call no function of the program.
// Only the outermost context counts: so it costs a blocking collective a nanosecond to look. Go
// programs have nonblocking collectives; this is for C.
func InBackground(ctx context.Context) context.Context { return background{ctx} }

type background struct{ context.Context }

// Alike returns ctx, in the background if other is.
func Alike(other, ctx context.Context) context.Context {
	if IsInBackground(other) {
		return InBackground(ctx)
	}
	return ctx
}

// IsInBackground reports whether InBackground has made ctx.
func IsInBackground(ctx context.Context) bool {
	_, is := ctx.(background)
	return is
}
