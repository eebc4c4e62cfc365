// Package sim simulates collectives on networks and of as many ranks as one does not have: the
// algorithms of gompi themselves, whose messages take virtual time. Ranks are coroutines, vectors
// have a length and no content, and what links, switches and processors take is a model (Machine).
//
// Messages to several hosts leave by parts in turn, as TCP's flows share a link: what a rank sends
// behind a long message delays it.
//
// What the model leaves out: no packet is lost; shared memory inside a host is messages that cost
// little.
package sim
