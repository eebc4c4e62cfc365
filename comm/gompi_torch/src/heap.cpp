#include "heap.h"

#include <cstring>
#include <mutex>
#include <unordered_set>

#include <c10/core/CPUAllocator.h>

#include "gompi.h"

namespace gompi_torch::heap {

namespace {

// Shorter ones gain nothing: they are copied by way of other memory.
constexpr size_t least = 4 << 10;

thread_local int depth = 0;

struct Allocator : c10::Allocator {
	// Either may be what torch declares: from some 2.x on it is no longer const.
	at::DataPtr allocate(size_t n) { return take(n); }
	at::DataPtr allocate(size_t n) const { return take(n); }

	// Of torch 2.
	void copy_data(void* to, const void* from, size_t n) const { std::memcpy(to, from, n); }

	c10::DeleterFnPtr raw_deleter() const override { return &give; }

	at::DataPtr take(size_t n) const {
		void* p = nullptr;
		if (depth == 0 || n < least || gompi_alloc_local(n, &p) != GOMPI_OK)
			return ordinary->allocate(n);
		std::lock_guard<std::mutex> lock(mutex);
		taken.insert(p);
		return {p, p, &give, c10::Device(c10::kCPU)};
	}

	static void give(void* p);

	c10::Allocator* ordinary = nullptr;
	mutable std::mutex mutex; // guards taken
	mutable std::unordered_set<void*> taken;
};

Allocator allocator;

// Called for what lies in the heap, and for all that raw_allocate has returned.
void Allocator::give(void* p) {
	{
		std::lock_guard<std::mutex> lock(allocator.mutex);
		if (allocator.taken.erase(p)) {
			gompi_dealloc_local(p); // in a child of a rank it does nothing
			return;
		}
	}
	allocator.ordinary->raw_deleter()(p);
}

} // namespace

void open() {
	if (allocator.ordinary)
		return;
	allocator.ordinary = c10::GetCPUAllocator();
	c10::SetCPUAllocator(&allocator, 1);
}

void enter() { depth++; }
void leave() { depth--; }

int64_t tensors() {
	std::lock_guard<std::mutex> lock(allocator.mutex);
	return allocator.taken.size();
}

} // namespace gompi_torch::heap
