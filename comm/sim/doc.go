// Package sim simulates collectives on networks and rank counts that are not at hand. It runs
// gompi's own algorithms; their messages take virtual time. Ranks are coroutines, vectors have a
// length and no content, and the costs of links, switches and processors are a model (Machine).
//
// Messages to several hosts leave in parts that take turns, as TCP's flows share a link: a short
// message behind a long one to another host is delayed by its parts.
//
// Where several ranks share a host, the hierarchical collectives of package hier run, too. Their
// work in the host's memory has a model of its own (Memory).
//
// The model loses no packet. A message inside a host differs from one between hosts only in its
// cost.
package sim
