// How the members of a new group meet before they make it.
#pragma once

#include <chrono>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace gompi_torch {

// Blocks until all members of a group that is to be made have called it, for the limit at most:
// then the members that have come all throw, and so does each that comes later. members are the
// numbers by which the error names them, this one is me in the list. The store is the group's own.
//
// It goes before the calls of gompi that make the group, which are collectives of the world: a
// limit of theirs would break that, and every later group.
void awaitMembers(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& members, int me, std::chrono::milliseconds limit);

} // namespace gompi_torch
