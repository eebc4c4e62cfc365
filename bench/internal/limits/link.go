package limits

// A Link is what joins each of several hosts to all others: it carries so many bytes per second
// each way, at the same time. The switch between them takes no time.
type Link struct {
	Rate  float64 // bytes per second
	Burst int     // bytes that pass at once after a pause, in addition
	Hosts int
	Ranks int // of each host
}

// Time returns the least microseconds that op takes with blocks of so many bytes, if the bytes that
// cross the busiest link, in the direction that has more of them, take all the time: each block
// crosses once to a host that needs it, and blocks are combined before they do. An operation after
// a pause may take less, by a burst. ok is false if nothing can be said: of other operations, and
// of so few bytes that all may pass as a burst.
func (l Link) Time(op string, bytes int) (us float64, ok bool) {
	others, ranks := float64(l.Hosts-1), float64(l.Ranks)
	blocks, ok := map[string]float64{
		"bcast":         1,
		"reduce":        1,
		"allreduce":     2 * others / float64(l.Hosts),
		"iallreduce":    2 * others / float64(l.Hosts),
		"reducescatter": others * ranks,
		"allgather":     others * ranks,
		"gather":        others * ranks,
		"scatter":       others * ranks,
		"alltoall":      others * ranks * ranks,
		"scan":          1,
	}[op]
	crossing := blocks * float64(bytes)
	if !ok || l.Hosts < 2 || crossing <= float64(l.Burst) {
		return 0, false
	}
	return crossing / l.Rate * 1e6, true
}
