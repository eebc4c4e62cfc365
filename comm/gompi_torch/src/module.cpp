// gompi_torch._C: what the Python side of gompi_torch uses.
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

#include "ending.h"
#include "group.h"
#include "heap.h"
#include "store.h"

namespace gompi_torch {

namespace {

// A communicator of the same ranks as GOMPI_WORLD, for one group or store: when that breaks, the
// others are whole.
Communicator world() {
	gompi_comm c;
	check(gompi_dup(GOMPI_WORLD, &c));
	return Communicator(c);
}

std::atomic<bool> joined{false};

std::pair<int, int> join() {
	static std::mutex once;
	std::lock_guard<std::mutex> lock(once);
	if (!joined) {
		check(gompi_init());
		leaveAtExit();
		joined = true;
	}
	int rank, size;
	check(gompi_rank(GOMPI_WORLD, &rank));
	check(gompi_size(GOMPI_WORLD, &size));
	return {rank, size};
}

c10::intrusive_ptr<GroupBase> worldGroup(const StorePtr& store, std::chrono::milliseconds timeout) {
	auto [rank, size] = join();
	watchEnds();
	heap::open();
	return c10::make_intrusive<Group>(world(), rank, size, store, timeout);
}

// A group of some ranks, which alone call it, with the same tag.
c10::intrusive_ptr<GroupBase> group(const std::vector<int>& ranks, int rank, int tag, const StorePtr& store, std::chrono::milliseconds timeout) {
	gompi_comm c;
	check(gompi_create_group(GOMPI_WORLD, ranks.data(), ranks.size(), tag, &c));
	return c10::make_intrusive<Group>(Communicator(c), rank, static_cast<int>(ranks.size()), store, timeout);
}

c10::intrusive_ptr<c10d::Store> store() {
	auto [rank, size] = join();
	return c10::make_intrusive<Store>(world(), rank, size);
}

} // namespace

} // namespace gompi_torch

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
	using namespace gompi_torch;
	py::call_guard<py::gil_scoped_release> blocks;
	m.def("join", &join, blocks, "Joins the job, once; returns this rank and their number.");
	m.def("joined", [] { return joined.load(); }, "Whether join has been called.");
	m.def("world_group", &worldGroup, blocks, "A group of all ranks, which all call it.");
	m.def("group", &group, blocks, "A group of some ranks, which all of them call, with the same tag.");
	m.def("store", &store, blocks, "A store of all ranks, which all call it.");
	m.def("explain_mismatches", [](py::function explain) {
		explain.inc_ref(); // it is used until the process ends
		explainMismatch = [f = explain.ptr()](const StorePtr& store, int rank, int size) {
			py::gil_scoped_acquire lock;
			return py::cast<std::string>(py::handle(f)(store, rank, size));
		};
	}, "Has a function say where ranks that called different collectives are.");
	m.def("abort", [](int status, const std::string& why) { gompi_abort(status, why.c_str()); }, blocks, "Ends the job.");
	m.def("await_end", &awaitEnd, blocks, "Waits until some rank has ended, or the launcher ends this one, but no longer than the limit.");
	m.def("leave_groups", &leaveGroups, blocks, "Leaves all groups, as the process ends.");
	m.def("waits_for_next", &Queue::waitsForNext);
	m.def("enter_heap", &heap::enter);
	m.def("leave_heap", &heap::leave);
	m.def("heap_tensors", &heap::tensors);
}
