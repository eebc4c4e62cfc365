// Package sim simulates collectives on networks and of as many ranks as one does not have: the
// algorithms of gompi themselves, whose messages take virtual time. Ranks are coroutines, vectors
// have a length and no content, and what links, switches and processors take is a model (Machine).
//
// Messages to several hosts leave by parts in turn, as TCP's flows share a link: what a rank sends
// behind a long message delays it.
//
// Where several ranks share a host the hierarchical collectives of package hier run, too. What they
// do in the host's memory is a model of its own (Memory).
//
// What the model leaves out: no packet is lost; a message inside a host is one between hosts that
// costs less.
package sim
