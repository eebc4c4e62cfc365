// Tensors in the symmetric heap, which the other ranks of a host read and write in place.
#pragma once

#include <cstdint>

namespace gompi_torch::heap {

// From now on, tensors that a thread makes between enter() and leave() lie in the heap, if they
// have some length and there is room. A parent sees the writes of a child made by fork() to them:
// so the heap is for gradients alone.
void open();
void enter();
void leave();

// How many tensors there are in the heap.
int64_t tensors();

} // namespace gompi_torch::heap
