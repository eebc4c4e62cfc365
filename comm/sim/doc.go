// Package sim simulates collectives on networks and of as many ranks as one does not have: the
// algorithms of gompi themselves, whose messages take virtual time. Ranks are coroutines, vectors
// have a length and no content, and what links, switches and processors take is a model (Machine).
//
// What the model leaves out: messages that share a link follow one another, where TCP gives each
// flow a part of it; no packet is lost; shared memory inside a host is messages that cost little.
package sim
